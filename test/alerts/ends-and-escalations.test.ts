import type { Knex } from "knex";
import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { openChannels } from "../../src/parts/alerts/channels/channel-kinds.ts";
import { type RunningSender, defaultSenderOptions, startSender } from "../../src/parts/alerts/outbox/sender.ts";
import { sweepAlerts } from "../../src/parts/alerts/run-alerts.ts";
import { sweepQuestions } from "./sweep-questions.ts";
import { wallClock } from "../../src/platform/clock.ts";
import { createLog } from "../../src/platform/log.ts";
import { seededRandom } from "../../src/platform/random.ts";
import { durationText } from "../../src/platform/readable-text.ts";
import { applyBatch } from "../../src/core/worker/apply-batch.ts";
import { sampleCustomer, sampleOrder } from "../mirror/samples.ts";
import { eventually } from "../support/eventually.ts";
import { type MailServer, startMailServer } from "../support/mail-server.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { applyDeps, emptyAll } from "../worker/worker-stand.ts";
import { channelDeps } from "./channels/channel-deps.ts";
import { type ChannelServer, startChannelServer } from "./channels/channel-server.ts";
import { deliver, storeBodies } from "./timeline-stand.ts";
import { declined, event, standingClock } from "./sweep-stand.ts";
import { settingsOf, testAlertContext, toldTo } from "./test-alert-context.ts";

const database = useTestDatabase();
let db: Knex;
let server: ChannelServer;
let mail: MailServer;
let sender: RunningSender | null = null;

beforeAll(() => {
  ({ db } = database);
});
beforeEach(async () => {
  await emptyAll(db);
  [server, mail] = await Promise.all([startChannelServer(), startMailServer()]);
});
afterEach(async () => {
  await sender?.close();
  sender = null;
  await Promise.all([server.close(), mail.close()]);
});

const settingsWith = (file: object) =>
  settingsOf({
    channels: {
      page: { kind: "pagerduty", routingKeyFrom: "ALERT_KEY", url: `${server.url}/page` },
      team: { kind: "slack", urlFrom: "ALERT_TEAM" },
      boss: { kind: "email", to: ["boss@example.com"] },
    },
    destinations: { privateHosts: ["127.0.0.1"] },
    links: { order: "https://admin.example.com/orders/{id}" },
    ...file,
  });

/** Sends what is due to the real servers until nothing is. */
async function send(settings: ReturnType<typeof settingsWith>): Promise<void> {
  const secrets = {
    ALERT_KEY: "hunter2 hunter2 hunter2",
    ALERT_TEAM: `${server.url}/team`,
  };
  const smtp = { url: mail.url, from: "tallyhook@example.com" };
  const channels = openChannels(settings.channels, channelDeps({ privateHosts: ["127.0.0.1"], secrets, smtp }));
  const log = createLog({ level: "silent", name: "test", destination: { write: () => {} } });
  const deps = { db, log, clock: wallClock, random: seededRandom("ends") };
  sender = startSender(deps, channels, { ...defaultSenderOptions, pollMs: 10 });
  const isAllSent = async (): Promise<boolean> => {
    const due = db("alerts.outbox").where("state", "pending").where("due_at", "<=", db.fn.now());
    return (await due.first("id")) === undefined;
  };
  await eventually("all that is due is sent", isAllSent, { withinMs: 60_000 });
  await sender.close();
  sender = null;
}

const posted = (path: string) =>
  server.posts
    .filter((post) => post.path === path)
    .map(({ body }) => JSON.parse(body) as { event_action: string; dedup_key: string });

const paid = sampleOrder({
  id: "order-9",
  subscription_id: "subscription-9",
  subscription_cycle: 2,
  updated_at: "2025-03-05T15:00:00.000Z",
});

test("an incident is resolved in quiet hours as well; where people read, the end waits", async () => {
  const now = Date.now();
  const timeOfDay = (hours: number) => new Date(now + hours * 3_600_000).toISOString().slice(11, 16);
  const settings = settingsWith({
    defaultChannels: ["page", "team"],
    digests: { when: "off" },
    quietHours: { from: timeOfDay(2), to: timeOfDay(5) },
  });
  const clock = standingClock(new Date(now).toISOString());
  const alertContext = testAlertContext({ settings, clock });
  await deliver(db, alertContext, [[event("order.failed", declined)]]);
  clock.advanceHours(3);
  await applyUnsent(alertContext, event("order.succeeded", paid));
  await send(settings);
  expect(posted("/page")).toMatchObject([{ event_action: "resolve", dedup_key: "dunning:subscription-9:2#1" }]);
  expect(posted("/team")).toEqual([]);
  const waiting = await db("alerts.outbox").where("state", "pending").pluck<string[]>("channel");
  expect(waiting).toEqual(["team"]);
});

/** Applies without a sender: what is queued stays pending. */
async function applyUnsent(alertContext: ReturnType<typeof testAlertContext>, sent: object): Promise<void> {
  const seqs = await storeBodies(db, [JSON.stringify(sent)]);
  await applyBatch({ ...applyDeps(db), ...toldTo(alertContext) }, seqs);
}

test("what is over says how much came in, after how many attempts, and how long it lasted", async () => {
  const settings = settingsWith({ defaultChannels: ["boss"], digests: { when: "off" } });
  const alertContext = testAlertContext({ settings });
  await deliver(db, alertContext, [[event("order.failed", declined)]]);
  await applyUnsent(alertContext, event("order.succeeded", paid));
  await send(settings);
  expect(mail.mails.at(-1)?.source).toContain("Subject: [RESOLVED]");
  const { source = "" } = mail.mails.at(-1) ?? {};
  expect(source).toMatch(/Lasted: \d+ (days?|hours?|minutes?)/);
  expect(source).toContain("Recovered: 10.00 USD");
  expect(source).toContain("Declined attempts: 1");
  expect(durationText(0)).toBe("less than a minute");
  expect(durationText(3_600_000)).toBe("1 hour");
  expect(durationText(((4 * 24 + 3) * 60 + 7) * 60_000)).toBe("4 days 3 hours");
});

test("an escalation keeps the amount, the customer, the advice and the link", async () => {
  const settings = settingsWith({
    defaultChannels: ["team"],
    escalation: [{ afterMinutes: 30, severities: ["critical"], channels: ["boss", "page"] }],
  });
  const clock = standingClock(new Date().toISOString());
  const dashboardUrl = "https://tallyhook.example.com";
  const alertContext = testAlertContext({ settings, clock, dashboardUrl });
  const disputed = sampleOrder({ id: "order-3", status: "chargeback", transactions: [] });
  await deliver(db, alertContext, [[event("customer.created", sampleCustomer()), event("order.chargeback", disputed)]]);
  clock.advanceHours(1);
  await sweepUnsent(alertContext);
  await send(settings);
  const [page] = server.posts.filter(({ path }) => path === "/page");
  for (const told of [page?.body, mail.mails[0]?.source.replaceAll("=\r\n", "")]) {
    expect(told).toContain("Not acknowledged for 30 min");
    expect(told).toContain("10.00 USD");
    expect(told).toContain("(customer-1)");
    expect(told).toContain("What to do");
    expect(told).toContain("alerts ack ");
    expect(told).toMatch(/https:\/\/admin\.example\.com\/orders\/order-3/);
    expect(told).toMatch(/https:\/\/tallyhook\.example\.com\/alerts\/1\b/);
  }
});

async function sweepUnsent(alertContext: ReturnType<typeof testAlertContext>): Promise<void> {
  const log = createLog({ level: "silent", name: "test", destination: { write: () => {} } });
  await sweepAlerts({ db, log, ...sweepQuestions }, alertContext);
}
