import type { Knex } from "knex";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { assess } from "../../../src/parts/alerts/assess.ts";
import { type AlertMessage, runbookOf } from "../../../src/parts/alerts/message.ts";
import { slackPayload } from "../../../src/parts/alerts/channels/slack.ts";
import { findAlert } from "../../../src/parts/alerts/store.ts";
import { redactMessages } from "../../../src/parts/alerts/redact-messages.ts";
import { sweepAlerts } from "../../../src/parts/alerts/run-alerts.ts";
import { sweepQuestions } from "../sweep-questions.ts";
import { createLog } from "../../../src/platform/log.ts";
import { applySnapshots } from "../../../src/core/mirror/write/apply.ts";
import { seededRandom } from "../../../src/platform/random.ts";
import { sampleCustomer, sampleEntry, sampleOrder, shown } from "../../mirror/samples.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { emptyAll } from "../../worker/worker-stand.ts";
import { messagesOf, sendDue } from "../timeline-stand.ts";
import { letPass, lostRenewal, tellings } from "./storm-stand.ts";
import { standingClock, sweep } from "../sweep-stand.ts";
import { settingsOf, testAlertContext } from "../test-alert-context.ts";

const database = useTestDatabase();
let db: Knex;
beforeAll(() => {
  ({ db } = database);
});
beforeEach(() => emptyAll(db));

const start = "2026-03-10T13:00:00.000Z";
const clock = standingClock(start);
beforeEach(() => clock.set(start));
const settings = settingsOf({
  channels: {
    log: { kind: "stdout" },
    team: { kind: "slack", urlFrom: "ALERT_TEAM" },
    page: { kind: "pagerduty", routingKeyFrom: "ALERT_PAGE" },
  },
  defaultChannels: ["log", "team"],
  rules: {
    // Told by itself, not on the daily list.
    dunning_final: { severity: "critical", channels: ["team", "page"] },
    dunning_renewal: { highAmountMinor: { USD: 1_000_000 } },
  },
});
const alertContext = testAlertContext({ settings, clock, serviceClock: clock });
type Order = ReturnType<typeof sampleOrder>;
const ago = (minutes: number): string => new Date(clock.now().getTime() - minutes * 60_000).toISOString();
const many = <T>(count: number, make: (n: number) => T): T[] => Array.from({ length: count }, (_, n) => make(n));

async function learn(orders: Order[]): Promise<void> {
  await db.transaction(async (trx) => {
    const observations = orders.map((order) => shown("order", order));
    const { written } = await applySnapshots(trx, observations);
    await assess(trx, alertContext, written, "event");
  });
  await sendDue(db);
}

const retried = { attempt_count: 1, next_retry_at: "2026-03-12T12:00:00.000Z" };

test("of 401 renewals lost in one storm each is told at once: twenty by themselves, the others in lists", async () => {
  await learn(many(401, (n) => lostRenewal(n, ago(1))));
  const alone = await tellings(db);
  expect(new Set(alone.map(({ alertId }) => alertId)).size).toBe(20);
  await sweep(db, alertContext);
  const told = await tellings(db);
  for (const channel of ["team", "page"]) {
    const own = told.filter((each) => each.channel === channel);
    expect(own).toHaveLength(401);
    expect(new Set(own.map(({ alertId }) => alertId)).size).toBe(401);
    const text = own.map(({ text: each }) => each).join("\n");
    for (let n = 0; n < 401; n++) {
      expect(text).toContain(`customer-${n}`);
      expect(text).toContain(`${((1_000 + n) / 100).toFixed(2)} USD`);
    }
  }
  const lists = await db("alerts.outbox")
    .where({ is_list: true, channel: "team" })
    .orderBy("id")
    .pluck<AlertMessage[]>("message");
  expect(lists[0]?.title).toMatch(/^\d+\.\d\d USD in \d+ alerts of a storm that cannot wait \(1 of \d\)$/);
  await sweep(db, alertContext);
  expect(await tellings(db), "once").toHaveLength(told.length);
});

test("fraud, chargebacks and high amounts are told in a storm of others; what was held is listed when it ends", async () => {
  const soon = { ...retried };
  await learn(many(60, (n) => lostRenewal(n, ago(1), soon)));
  expect(await tellings(db), "held back").toEqual([]);
  await learn([
    ...many(22, (n) => lostRenewal(100 + n, ago(1), { ...soon, failure_code: "fraud_suspected" })),
    lostRenewal(200, ago(1), { ...soon, total: 2_000_000 }),
    sampleOrder({ id: "order-300", status: "chargeback", transactions: [], updated_at: ago(1) }),
  ]);
  await sweep(db, alertContext);
  const told = (await tellings(db)).filter(({ channel }) => channel === "log");
  expect(new Set(told.map(({ alertId }) => alertId)).size).toBe(24);
  expect(told).toHaveLength(24);

  await letPass(db, 11);
  await sweep(db, alertContext);
  const all = (await tellings(db)).filter(({ channel }) => channel === "log");
  expect(all).toHaveLength(84);
  expect(new Set(all.map(({ alertId }) => alertId)).size).toBe(84);
  const end = await db("alerts.outbox")
    .where({ channel: "log", action: "resolve" })
    .first<{ id: string; message: AlertMessage }>("id", "message");
  expect(end?.message.title).toMatch(/^Declines are back to their usual rate: 63 alerts listed/);
  expect(end?.message.facts).toContainEqual({ label: "Held back and listed", value: "60" });
  const lists = await db("alerts.outbox").where("is_list", true).max("id as last").first();
  expect(Number(end?.id), "the end is told after the lists").toBeGreaterThan(Number(lists?.["last"]));
});

test("the end of a storm counts what waits for the daily list, and says that it stands there", async () => {
  const order = (n: number, failureCode: string) =>
    lostRenewal(n, ago(1), { subscription_id: null, failure_code: failureCode, total: 1_000 });
  await learn(many(60, (n) => order(n, "insufficient_funds")));
  await learn(many(2, (n) => order(100 + n, "fraud_suspected")));
  await letPass(db, 11);
  await sweep(db, alertContext);
  const end = await db("alerts.outbox")
    .where({ channel: "log", action: "resolve" })
    .first<{ message: AlertMessage }>("message");
  expect(end?.message.title).toBe("Declines are back to their usual rate, 620.00 USD in total");
  expect(end?.message.facts).toContainEqual({ label: "On the daily list", value: "60" });
  expect(end?.message.advice).toContain("Alerts that can wait are on the daily list");
});

test("what was paid while it was held back is not listed, and is counted at the end", async () => {
  await learn(many(40, (n) => lostRenewal(n, ago(1), retried)));
  await learn([
    lostRenewal(0, ago(0), {
      status: "succeeded",
      failure_code: null,
      transactions: [sampleEntry({ id: "sale-0", created_at: ago(0) })],
    }),
  ]);
  await letPass(db, 11);
  await sweep(db, alertContext);
  expect((await tellings(db)).filter(({ channel }) => channel === "log")).toHaveLength(39);
  const end = await db("alerts.outbox")
    .where({ channel: "log", action: "resolve" })
    .first<{ message: AlertMessage }>("message");
  expect(end?.message.facts).toContainEqual({ label: "Over before they were listed", value: "1" });
});

test("fraud and high amounts that are over before their list is written are listed with what became of them", async () => {
  const high = { ...retried, total: 2_000_000 };
  await learn(many(60, (n) => lostRenewal(n, ago(1), n < 30 ? high : retried)));
  const paid = { status: "succeeded", failure_code: null };
  await learn(
    [...many(30, (n) => n), 40].map((n) =>
      lostRenewal(n, ago(0), {
        ...(n < 30 ? high : retried),
        ...paid,
        transactions: [sampleEntry({ id: `sale-${n}`, created_at: ago(0) })],
      }),
    ),
  );
  await letPass(db, 11);
  await sweep(db, alertContext);
  const rows = await db("alerts.outbox")
    .where({ channel: "log" })
    .whereNot("state", "dropped")
    .orderBy("id")
    .pluck<AlertMessage[]>("message");
  const said = rows.flatMap(({ items = [] }) => items).filter((item) => item.facts[0]?.label === "Outcome");
  expect(said).toHaveLength(10);
  for (const { title, facts } of said) {
    expect(title).toMatch(/^20000.00 USD renewal declined/);
    expect(facts[0]?.value).toBe("paid after all");
  }
  const end = rows.find(({ action, rule }) => action === "resolve" && rule === "decline_storm");
  expect(end?.facts).toContainEqual({ label: "Over before they were listed", value: "1" });
});

test("a later stage does not make wait what could not wait", async () => {
  await learn(many(60, (n) => lostRenewal(n, ago(2), retried)));
  const second = { attempt_count: 2, next_retry_at: "2026-03-13T12:00:00.000Z" };
  const stolen = { ...retried, failure_code: "fraud_suspected" };
  await learn(many(25, (n) => lostRenewal(100 + n, ago(2), stolen)));
  await learn(many(25, (n) => lostRenewal(100 + n, ago(1), { ...second, failure_code: "expired_card" })));
  await sweep(db, alertContext);
  const told = (await tellings(db)).filter(({ channel }) => channel === "log");
  expect(new Set(told.map(({ alertId }) => alertId)).size).toBe(25);
});

test("a storm of five currencies adds and compares none, and says that there are more than it shows", async () => {
  const currencies = ["eur", "jpy", "kwd", "usd", "huf"];
  await learn(
    many(60, (n) =>
      lostRenewal(n, ago(1), {
        ...retried,
        currency: n < 40 ? "eur" : currencies[n % 5],
        total: currencies[n % 5] === "jpy" && n >= 40 ? 900_000 : 1_000 + n,
      }),
    ),
  );
  await letPass(db, 11);
  await sweep(db, alertContext);
  const [list] = await db("alerts.outbox")
    .where({ channel: "log", is_list: true })
    .orderBy("id")
    .pluck<AlertMessage[]>("message");
  expect(list?.title).toMatch(/^\d+\.\d\d EUR, .* and 2 more currencies in \d+ alerts that a storm held back/);
  const codes = (list?.items ?? []).map(
    ({ facts }) => facts.find(({ label }) => label === "Amount")?.value.slice(-3) ?? "",
  );
  expect(codes).toEqual([...codes].sort());
  expect(new Set(list?.facts.filter(({ label }) => label === "Total")).size).toBe(5);
});

test("what a list told is found with its alert, and its end goes into the next digest", async () => {
  await learn(many(40, (n) => lostRenewal(n, ago(1), retried)));
  await letPass(db, 11);
  await sweep(db, alertContext);
  const row = await db("alerts.alerts").where("order_id", "order-5").first<{ id: string }>("id");
  const alert = await findAlert(db, Number(row?.id));
  expect(alert?.messages).toEqual([]);
  expect(alert?.stormListings).toMatchObject([
    { channel: "log", told_how: "at_end", told_at: expect.any(Date) as Date },
    { channel: "team", told_how: "at_end" },
  ]);
  expect(alert?.facts["advice"]).toMatch(/\w/);
  await learn([
    lostRenewal(5, ago(0), {
      status: "succeeded",
      failure_code: null,
      transactions: [sampleEntry({ id: "sale-5", created_at: ago(0) })],
    }),
  ]);
  expect(await db("alerts.digest_items").where("alert_id", row?.id).orderBy("channel").pluck("stage")).toEqual([
    "recovered",
    "recovered",
  ]);
});

test("Slack shows every item of a list: none is cut", async () => {
  await learn(
    many(401, (n) => lostRenewal(n, ago(1), { order_number: `<&>`.repeat(20), customer_id: `customer-${n}` })),
  );
  await sweep(db, alertContext);
  const queued = await db("alerts.outbox").where({ is_list: true, channel: "team" }).pluck<AlertMessage[]>("message");
  const lists = queued.map((each) => ({ ...each, runbook: runbookOf(each.rule, null) }));
  const said = lists.map((message) => JSON.stringify(slackPayload(message))).join("\n");
  expect(said).not.toMatch(/… and \d+ more/);
  const own = (await tellings(db)).filter(({ channel, stage }) => channel === "team" && stage === null);
  expect(own).toHaveLength(381);
  for (const { alertId } of own) expect(said).toContain(`Alert: ${alertId}`);
  for (const message of lists) {
    const { blocks } = slackPayload(message) as { blocks: { text?: { text: string } }[] };
    expect(blocks.length).toBeLessThanOrEqual(50);
    for (const { text } of blocks) expect(text?.text.length ?? 0).toBeLessThanOrEqual(3_000);
  }
});

describe("quiet hours", () => {
  const night = (begins: string, ends: string) =>
    testAlertContext({
      settings: settingsOf({
        channels: { page: { kind: "pagerduty", routingKeyFrom: "ALERT_PAGE" } },
        defaultChannels: ["page"],
        quietHours: { from: begins, to: ends, except: [] },
        rules: { decline_storm: { severity: "error" } },
      }),
      clock,
      serviceClock: clock,
    });
  /** The time of day so many hours after another time. */
  const hoursAfter = (time: Date, hours: number): string =>
    new Date(time.getTime() + hours * 3_600_000).toISOString().slice(11, 16);
  const dues = () =>
    db("alerts.outbox")
      .orderBy("id")
      .select<{ stage: string; state: string; due_at: Date }[]>("stage", "state", "due_at");
  const learnAs = async (own: ReturnType<typeof testAlertContext>, orders: Order[]) =>
    db.transaction(async (trx) => {
      const { written } = await applySnapshots(
        trx,
        orders.map((order) => shown("order", order)),
      );
      await assess(trx, own, written, "event");
    });

  test("lists join an incident that has woken people, and its end comes after them", async () => {
    const wall = new Date();
    clock.set(wall.toISOString());
    const own = night(hoursAfter(wall, 1), hoursAfter(wall, 9));
    await learnAs(
      own,
      many(40, (n) => lostRenewal(n, ago(1), retried)),
    );
    await sendDue(db);
    clock.advanceHours(2);
    await letPass(db, 11);
    await sweepOnly(own);
    const rows = await dues();
    const told = rows.filter(({ stage }) => stage.startsWith("list:") || stage === "resolved");
    expect(told.length).toBeGreaterThan(1);
    expect(told.at(-1)?.stage).toBe("resolved");
    for (const { due_at: due } of told) expect(due.getTime()).toBeLessThan(Date.now() + 60_000);
  });

  test("where nobody was woken the end waits with the lists", async () => {
    const wall = new Date();
    clock.set(wall.toISOString());
    const own = night(hoursAfter(wall, -1), hoursAfter(wall, 8));
    await learnAs(
      own,
      many(40, (n) => lostRenewal(n, ago(1), retried)),
    );
    await letPass(db, 11);
    await sweepOnly(own);
    const pending = (await dues()).filter(({ state }) => state === "pending");
    const lists = pending.filter(({ stage }) => stage.startsWith("list:"));
    expect(lists.length).toBeGreaterThan(0);
    const end = pending.find(({ stage }) => stage === "resolved");
    expect(end?.due_at).toEqual(lists.at(-1)?.due_at);
    expect(end?.due_at.getTime()).toBeGreaterThan(Date.now() + 60_000);
  });

  async function sweepOnly(own: ReturnType<typeof testAlertContext>): Promise<void> {
    const log = createLog({ level: "silent", name: "test", destination: { write: () => {} } });
    await sweepAlerts({ db, log, ...sweepQuestions }, own);
  }
});

test("a storm that goes on lists what it held for an hour, and is told again at each doubling", async () => {
  await learn(many(30, (n) => lostRenewal(n, ago(1), retried)));
  for (let round = 1; round <= 4; round++) {
    await letPass(db, 9);
    await learn(many(30, (n) => lostRenewal(round * 100 + n, ago(1), retried)));
    await sweep(db, alertContext);
  }
  expect((await messagesOf(db, "storm:declines")).filter((each) => each.includes("grown"))).toEqual([
    "trigger grown:1",
    "trigger grown:2",
  ]);
  expect(await tellings(db)).toEqual([]);
  await letPass(db, 55);
  await learn(many(30, (n) => lostRenewal(900 + n, ago(1), retried)));
  await sweep(db, alertContext);
  expect((await tellings(db)).filter(({ channel }) => channel === "log")).toHaveLength(180);
  expect(await db("alerts.alerts").where({ key: "storm:declines", state: "open" })).toHaveLength(1);
});

test("the message of a storm names the rules that are held back, and how to list them", async () => {
  await learn(many(40, (n) => lostRenewal(n, ago(1), retried)));
  const [message] = await db("alerts.outbox").pluck<AlertMessage[]>("message");
  expect(message?.advice).toContain(
    '"node src/bin/tallyhook.js alerts list --rule decline" (also dunning_first, dunning_renewal, dunning_final)',
  );
  expect(message?.facts).toContainEqual({ label: "Total", value: "407.80 USD" });
});

describe("declines that are delivered together", () => {
  test("and were made in five hours are no attack: each is told by itself", async () => {
    await learn(many(30, (n) => lostRenewal(n, ago(n * 10), retried)));
    expect(await db("alerts.alerts").whereRaw("starts_with(key, 'storm:')")).toEqual([]);
    expect((await tellings(db)).filter(({ channel }) => channel === "log")).toHaveLength(30);
  });

  test("and are too many to tell one by one are listed, and still no attack", async () => {
    await learn(many(120, (n) => lostRenewal(n, ago(n * 10), retried)));
    const storms = await db("alerts.alerts").whereRaw("starts_with(key, 'storm:')");
    expect(storms).toMatchObject([{ key: "storm:late-declines", severity: "warning" }]);
    await letPass(db, 11);
    await sweep(db, alertContext);
    expect((await tellings(db)).filter(({ channel }) => channel === "log")).toHaveLength(120);
  });

  test("a day late, but were made within minutes, are an attack", async () => {
    await learn(many(30, (n) => lostRenewal(n, ago(24 * 60 + n / 10), retried)));
    expect(await db("alerts.alerts").where("key", "storm:declines")).toHaveLength(1);
  });
});

test.each([
  ["as many as on the same weekday a week ago", 7, false],
  ["as many as on the same day of the month before", 28, false],
  ["more than on any comparable day", 3, true],
])("a billing day is held against the last comparable one: %s", async (_, daysAgo, isStorm) => {
  // Of March it is the tenth: 28 days ago it was the tenth of February.
  const dayMs = 86_400_000;
  const before = new Date(clock.now().getTime() - daysAgo * dayMs).toISOString();
  const long = new Date(clock.now().getTime() - 60 * dayMs).toISOString();
  await learn(many(10, (n) => lostRenewal(5_000 + n, before, retried)));
  await learn(many(10, (n) => lostRenewal(6_000 + n, before, retried)));
  await learn([lostRenewal(7_000, long, retried)]);
  await letPass(db, 11);
  await learn(many(50, (n) => lostRenewal(n, ago(1), retried)));
  expect(await db("alerts.alerts").where("key", "storm:declines")).toHaveLength(isStorm ? 1 : 0);
});

test("an erased customer is in no list any more", async () => {
  await db.transaction((trx) =>
    applySnapshots(trx, [shown("customer", sampleCustomer({ id: "customer-7", email: "ada@example.com" }))]),
  );
  await learn(many(40, (n) => lostRenewal(n, ago(1))));
  await sweep(db, alertContext);
  const listed = () => db("alerts.outbox").where("is_list", true).pluck<object[]>("message");
  // The seventh was told by itself: the first twenty are.
  await db("alerts.alerts").where("customer_id", "customer-30").update("customer_id", "customer-7");
  const before = JSON.stringify(await listed());
  expect(before).toContain("customer-30");
  const theirs = { customerId: "customer-7", ids: [], seqs: [], names: [] };
  await db.transaction((trx) => redactMessages(trx, theirs));
  const after = JSON.stringify(await listed());
  expect(after).not.toContain("customer-30");
  expect(after).toContain("customer-31");
});

test.each(["one", "two", "three", "four"])(
  "random histories, seed %s: by the end of the storm each channel was told of each alert that demands action, none twice",
  async (seed) => {
    const random = seededRandom(`storm ${seed}`);
    const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)]!;
    let next = 0;
    const waiting: Order[] = [];
    const makers: (() => Order)[] = [
      () => lostRenewal(next++, ago(random() * 5), retried),
      () => lostRenewal(next++, ago(random() * 300), retried),
      () => lostRenewal(next++, ago(random() * 5)),
      () => lostRenewal(next++, ago(random() * 5), { ...retried, failure_code: "fraud_suspected" }),
      () => lostRenewal(next++, ago(random() * 5), { ...retried, total: 2_000_000 }),
      () =>
        sampleOrder({
          id: `order-${next++}`,
          status: "chargeback",
          transactions: [],
          updated_at: ago(random() * 5),
        }),
    ];
    for (let round = 0; round < 12; round++) {
      const size = Math.floor(random() * 60);
      const maker = random() < 0.5 ? pick(makers) : null;
      const orders = many(size, () => (maker ?? pick(makers))());
      // Some are lost for good later: another stage of the same alert.
      const renewals = orders.filter(({ status }) => status === "failed");
      if (renewals.length > 0 && random() < 0.5) waiting.push(pick(renewals));
      const lost = random() < 0.5 ? waiting.shift() : undefined;
      if (lost !== undefined) {
        orders.push({ ...lost, attempt_count: 4, next_retry_at: null, updated_at: ago(0) });
      }
      await learn(orders);
      if (random() < 0.7) await sweep(db, alertContext);
      await letPass(db, Math.floor(random() * 8));
    }
    await letPass(db, 15);
    await sweep(db, alertContext);
    const told = await tellings(db);
    const alerts = await db("alerts.alerts")
      .whereRaw("not starts_with(key, 'storm:')")
      .select<{ id: string; key: string; rule: string; stage: string }[]>("id", "key", "rule", "stage");
    expect(alerts.length).toBeGreaterThan(100);
    const items = await db("alerts.storm_items").select("channel", "alert_id", "stage", "told_at");
    expect(items.filter(({ told_at: at }) => at === null)).toEqual([]);
    for (const { id, key, rule, stage } of alerts) {
      const channels = rule === "dunning_final" ? ["team", "page"] : ["log", "team"];
      for (const channel of channels) {
        const own = told.filter((each) => each.channel === channel && each.alertId === Number(id));
        const listed = items
          .filter((each) => each.channel === channel && each.alert_id === id)
          .map((each) => String(each.stage));
        const alone = own.flatMap((each) => each.stage ?? []);
        const stages = [...new Set([...alone, ...listed])];
        expect(stages, `${key} ${channel}`).toContain(stage);
        expect(own.length, `${key} ${channel}: ${stages.join(", ")}`).toBe(stages.length);
      }
    }
    expect(await db("alerts.alerts").whereRaw("starts_with(key, 'storm:') and state <> 'resolved'")).toEqual([]);
  },
);
