import type { Knex } from "knex";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { acknowledgeAlert } from "../../src/parts/alerts/escalation.ts";
import { slackPayload } from "../../src/parts/alerts/channels/slack.ts";
import { sampleCustomer, sampleOrder } from "../mirror/samples.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { emptyAll } from "../worker/worker-stand.ts";
import { deliver, messagesOf } from "./timeline-stand.ts";
import { declined, event, standing, standingClock, sweep } from "./sweep-stand.ts";
import { settingsOf, testAlertContext } from "./test-alert-context.ts";

const database = useTestDatabase();
let db: Knex;
beforeAll(() => {
  ({ db } = database);
});
beforeEach(() => emptyAll(db));

const soft = { ...declined, failure_code: "insufficient_funds" };

interface Digest {
  severity: string;
  title: string;
  facts: { label: string; value: string }[];
  advice: string;
  items: { title: string }[];
}

/** The digests so far, oldest first. */
const digests = (): Promise<Digest[]> =>
  db("alerts.outbox").whereNull("alert_id").orderBy("id").pluck<Digest[]>("message");

const waiting = (): Promise<string[]> => db("alerts.digest_items").whereNull("told_at").orderBy("stage").pluck("stage");

test("the last retry is near: it stands on the day's list, once", async () => {
  const { clock, alertContext } = standing("2025-03-05T12:00:00.000Z");
  const fourth = { ...declined, attempt_count: 4, next_retry_at: "2025-03-08T12:00:00.000Z" };
  await deliver(db, alertContext, [[event("order.failed", fourth)]]);
  await sweep(db, alertContext);
  expect(await waiting()).toEqual([]);
  clock.advanceHours(25);
  const tomorrow = standingClock(new Date(Date.now() + 86_400_000).toISOString());
  for (let n = 0; n < 2; n++) {
    await sweep(db, testAlertContext({ clock: tomorrow, serviceClock: clock }));
    tomorrow.advanceHours(24);
  }
  expect((await digests()).map(({ title }) => title)).toEqual(["1 before the last retry (10.00 USD)"]);
  expect((await digests())[0]?.items.map(({ title }) => title)).toEqual([
    "10.00 USD renewal: last retry 8 Mar 12:00. Contact the customer first",
  ]);
});

test("orders that were not paid wait for the day's list, but for those that were paid meanwhile", async () => {
  const { clock, alertContext } = standing(new Date().toISOString());
  const order = (id: string, fields: object = {}) =>
    sampleOrder({
      id,
      status: "failed",
      failure_code: "insufficient_funds",
      transactions: [],
      ...fields,
    });
  await deliver(db, alertContext, [
    [event("order.failed", order("order-1"))],
    [event("order.failed", order("order-2"))],
  ]);
  await sweep(db, alertContext);
  expect(await db("alerts.outbox")).toEqual([]);
  const paid = order("order-1", {
    status: "succeeded",
    failure_code: null,
    updated_at: "2025-03-01T13:00:00.000Z",
  });
  await deliver(db, alertContext, [[event("order.succeeded", paid)]]);
  clock.advanceHours(24);
  await sweep(db, alertContext);
  await sweep(db, alertContext);
  expect(await digests()).toMatchObject([
    {
      severity: "warning",
      title: "1 order not paid (10.00 USD)",
      items: [{ title: "10.00 USD order AB12CD34: insufficient funds" }],
    },
  ]);
});

test("a list that asks nothing is not sent; it is counted with the next that does", async () => {
  const { clock, alertContext } = standing(new Date().toISOString());
  const second = { ...soft, attempt_count: 2, updated_at: "2025-03-02T12:00:00.000Z" };
  await deliver(db, alertContext, [[event("order.failed", soft)], [event("order.failed", second)]]);
  clock.advanceHours(24);
  await sweep(db, alertContext);
  expect(await digests()).toEqual([]);
  expect(await waiting()).toEqual(["attempt:1", "attempt:2"]);
  const lost = {
    ...soft,
    id: "order-8",
    subscription_id: "subscription-8",
    attempt_count: 4,
    next_retry_at: null,
  };
  await deliver(db, alertContext, [[event("order.failed", lost)]]);
  await sweep(db, alertContext);
  const [list, ...others] = await digests();
  expect(others).toEqual([]);
  expect(list).toMatchObject({
    severity: "error",
    title: "1 renewal LOST (10.00 USD)",
    facts: [
      { label: "LOST, collect or cancel", value: "10.00 USD" },
      {
        label: "Nothing to do yet",
        value: "1 declined renewal (10.00 USD): the service retries",
      },
    ],
    items: [{ title: "LOST 10.00 USD renewal: 4 attempts declined. Collect or cancel" }],
  });
  expect(await waiting()).toEqual([]);
});

test("a long list is cut into messages that name all, the largest of a currency first", async () => {
  const settings = settingsOf({
    channels: { log: { kind: "stdout" }, team: { kind: "slack", urlFrom: "ALERT_TEAM" } },
    defaultChannels: ["log", "team"],
    rules: { decline_storm: { enabled: false } },
  });
  const clock = standingClock(new Date().toISOString());
  const alertContext = testAlertContext({ settings, clock });
  const currencies = ["usd", "eur", "jpy"];
  const orders = Array.from({ length: 330 }, (_, n) => ({
    ...soft,
    id: `lost-${n}`,
    order_number: `NR${n}`,
    subscription_id: `lost-${n}`,
    currency: currencies[n % 3],
    total: 1_000 + n,
    attempt_count: 4,
    next_retry_at: null,
  }));
  await deliver(db, alertContext, [orders.map((order) => event("order.failed", order))]);
  await deliver(db, alertContext, [[event("order.failed", soft)]]);
  clock.advanceHours(24);
  await sweep(db, alertContext);
  await sweep(db, alertContext);
  expect(await waiting()).toEqual([]);
  for (const channel of ["log", "team"]) {
    const lists = await db("alerts.outbox")
      .where({ channel })
      .whereNull("alert_id")
      .orderBy("id")
      .pluck<(Digest & { items: { title: string; facts: { value: string }[] }[] })[]>("message");
    expect(lists.length).toBeGreaterThan(1);
    const named = lists.flatMap(({ items }) => items);
    expect(new Set(named.map(({ facts }) => facts[0]?.value)).size).toBe(330);
    expect(named).toHaveLength(330);
    for (const [n, { title, facts }] of lists.entries()) {
      expect(title).toMatch(/^\d+ renewals LOST \(.*\) \(\d of \d\)$/);
      expect(title).toContain(`(${n + 1} of ${lists.length})`);
      expect(facts.some(({ label }) => label === "Nothing to do yet")).toBe(n === 0);
    }
    const amounts = named.map(({ title }) => title.split(" ").slice(1, 3));
    const eur = amounts.filter(([, code]) => code?.startsWith("EUR")).map(([sum]) => Number(sum));
    expect(eur).toEqual(eur.toSorted((a, b) => b - a));
    const text = JSON.stringify(
      lists.map((list) => slackPayload({ ...list, runbook: "docs/runbooks.md#digest" } as never)),
    );
    expect(text).not.toMatch(/and \d+ more\./);
  }
});

test("a soft decline leaves the list when the customer is to be written to", async () => {
  const { alertContext } = standing(new Date().toISOString());
  const third = { ...soft, attempt_count: 3, updated_at: "2025-03-03T12:00:00.000Z" };
  await deliver(db, alertContext, [[event("order.failed", soft)]]);
  expect(await waiting()).toEqual(["attempt:1"]);
  await deliver(db, alertContext, [[event("order.failed", third)]]);
  expect(await waiting()).toEqual([]);
  expect(await messagesOf(db, "dunning:subscription-9:2")).toEqual(["trigger attempt:3"]);
});

test("who was asked for something hears on the list that it has ended; incidents end at once", async () => {
  const settings = settingsOf({
    channels: {
      log: { kind: "stdout" },
      pager: { kind: "pagerduty", routingKeyFrom: "ALERT_KEY" },
    },
    rules: { dunning_renewal: { channels: ["log", "pager"] } },
  });
  const clock = standingClock(new Date().toISOString());
  const alertContext = testAlertContext({ settings, clock });
  const lost = { ...declined, id: "order-8", subscription_id: "subscription-8" };
  const late = { updated_at: "2025-03-03T13:00:00.000Z" };
  await deliver(db, alertContext, [
    [event("customer.created", sampleCustomer())],
    [event("order.failed", declined)],
    [event("order.failed", { ...lost, attempt_count: 4, next_retry_at: null })],
  ]);
  clock.advanceHours(24);
  await sweep(db, alertContext);
  const paid = { status: "succeeded", failure_code: null, ...late };
  await deliver(db, alertContext, [
    [event("order.succeeded", { ...declined, ...paid })],
    [event("order.succeeded", { ...lost, ...paid })],
  ]);
  const key = "dunning:subscription-9:2";
  expect(await messagesOf(db, key, "pager")).toEqual(["trigger attempt:1", "resolve recovered"]);
  expect(await messagesOf(db, key, "log")).toEqual(["trigger attempt:1"]);
  clock.advanceHours(24);
  await sweep(db, alertContext);
  expect((await digests()).map(({ title }) => title)).toEqual(["1 renewal LOST (10.00 USD)", "2 ended (20.00 USD)"]);
  expect((await digests())[1]).toMatchObject({
    severity: "info",
    advice: "Ended: stop reminding these customers.",
    items: [
      { title: "10.00 USD recovered, j…@e….com: after 1 declined attempt" },
      { title: "10.00 USD recovered, j…@e….com: after 4 declined attempts" },
    ],
  });
});

test("of declines nobody is woken but for fraud", async () => {
  const settings = settingsOf({
    channels: { log: { kind: "stdout" }, boss: { kind: "stdout" } },
    rules: { dunning_renewal: { highAmountMinor: { USD: 1 } } },
    escalation: [{ afterMinutes: 30, severities: ["critical"], channels: ["boss"] }],
  });
  const clock = standingClock(new Date().toISOString());
  const alertContext = testAlertContext({ settings, clock });
  const fraud = { ...declined, id: "order-8", subscription_id: "subscription-8" };
  await deliver(db, alertContext, [
    [event("order.failed", declined)],
    [event("order.failed", { ...fraud, failure_code: "fraud_suspected" })],
  ]);
  clock.advanceHours(1);
  await sweep(db, alertContext);
  expect(await messagesOf(db, "dunning:subscription-9:2")).toEqual(["trigger attempt:1"]);
  expect(await messagesOf(db, "dunning:subscription-9:2", "boss")).toEqual([]);
  expect(await messagesOf(db, "dunning:subscription-8:2", "boss")).toEqual(["trigger escalated:1"]);
});

test("what commits after the digest of its hour waits for the next one", async () => {
  const clock = standingClock(new Date().toISOString());
  const alertContext = testAlertContext({
    settings: settingsOf({ digests: { when: "hourly" } }),
    clock,
  });
  const order = (id: string) => sampleOrder({ id, status: "failed", failure_code: "do_not_honor", transactions: [] });
  const told = async () => (await digests()).map(({ items }) => items.length);
  clock.advanceHours(1);
  await deliver(db, alertContext, [[event("order.failed", order("order-1"))]]);
  await sweep(db, alertContext);
  await deliver(db, alertContext, [[event("order.failed", order("order-2"))]]);
  await sweep(db, alertContext);
  expect(await told()).toEqual([1]);
  clock.advanceHours(1);
  await sweep(db, alertContext);
  expect(await told()).toEqual([1, 1]);
});

test("what waits for the end of quiet hours has told nobody, and does not escalate", async () => {
  const now = Date.now();
  const timeOfDay = (hours: number) => new Date(now + hours * 3_600_000).toISOString().slice(11, 16);
  const settings = settingsOf({
    channels: { log: { kind: "stdout" }, boss: { kind: "stdout" } },
    quietHours: { from: timeOfDay(-1), to: timeOfDay(4) },
    rules: { chargeback: { severity: "warning" } },
    escalation: [{ afterMinutes: 30, severities: ["warning"], channels: ["boss"] }],
  });
  const clock = standingClock(new Date(now).toISOString());
  const alertContext = testAlertContext({ settings, clock });
  const disputed = sampleOrder({ id: "order-3", status: "chargeback", transactions: [] });
  await deliver(db, alertContext, [[event("order.chargeback", disputed)]]);
  const boss = () => messagesOf(db, "chargeback:order-3", "boss");
  for (const hours of [1, 3.2]) {
    clock.advanceHours(hours);
    await sweep(db, alertContext);
    expect(await boss()).toEqual([]);
  }
  clock.advanceHours(0.5);
  await sweep(db, alertContext);
  expect(await boss()).toEqual(["trigger escalated:1"]);
});

test("what nobody acknowledges goes on to the next step, once each", async () => {
  const clock = standingClock(new Date().toISOString());
  const settings = settingsOf({
    channels: { log: { kind: "stdout" }, boss: { kind: "stdout" } },
    escalation: [
      { afterMinutes: 30, severities: ["critical"], channels: ["boss"] },
      { afterMinutes: 90, severities: ["critical"], channels: ["log", "boss"] },
    ],
  });
  const alertContext = testAlertContext({ settings, clock });
  const dispute = sampleOrder({ id: "order-3", status: "chargeback", transactions: [] });
  await deliver(db, alertContext, [[event("order.chargeback", dispute)]]);
  for (const hours of [0.4, 0.2, 0.2, 1, 1]) {
    clock.advanceHours(hours);
    await sweep(db, alertContext);
  }
  expect(await messagesOf(db, "chargeback:order-3", "boss")).toEqual(["trigger escalated:1", "trigger escalated:2"]);
  expect(await db("alerts.alerts").first("escalations", "state")).toEqual({
    escalations: 2,
    state: "open",
  });
});

test("what somebody has taken neither escalates nor stands in a digest", async () => {
  const clock = standingClock(new Date().toISOString());
  const settings = settingsOf({
    channels: { log: { kind: "stdout" }, boss: { kind: "stdout" } },
    escalation: [{ afterMinutes: 30, severities: ["critical"], channels: ["boss"] }],
  });
  const alertContext = testAlertContext({ settings, clock });
  const disputed = sampleOrder({ id: "order-3", status: "chargeback", transactions: [] });
  await deliver(db, alertContext, [[event("order.chargeback", disputed), event("order.failed", soft)]]);
  for (const id of await db("alerts.alerts").orderBy("id").pluck<string[]>("id")) {
    await acknowledgeAlert({ db, clock }, { id: Number(id), by: "ada", note: null });
  }
  clock.advanceHours(1.1);
  await sweep(db, alertContext);
  expect(await messagesOf(db, "chargeback:order-3", "boss")).toEqual([]);
  expect(await db("alerts.outbox").whereNull("alert_id")).toEqual([]);
});

test("quiet hours hold back what is not critical until they end", async () => {
  const clock = standingClock("2025-03-01T23:10:00.000Z");
  const settings = settingsOf({ quietHours: { from: "22:00", to: "07:00" } });
  const alertContext = testAlertContext({ settings, clock });
  const dispute = sampleOrder({ id: "order-3", status: "chargeback", transactions: [] });
  await deliver(db, alertContext, [[event("order.failed", declined)], [event("order.chargeback", dispute)]]);
  const rows = await db("alerts.outbox as o")
    .join("alerts.alerts as a", "a.id", "o.alert_id")
    .orderBy("a.key")
    .select<{ key: string; due_at: Date }[]>("a.key", "o.due_at");
  expect(rows[1]).toEqual({
    key: "dunning:subscription-9:2",
    due_at: new Date("2025-03-02T07:00:00.000Z"),
  });
  expect(Math.abs(rows[0]!.due_at.getTime() - Date.now())).toBeLessThan(60_000);
});

test("messages link to the pages that the settings name, whatever an id holds", async () => {
  const links = {
    order: "https://admin.example/orders/{id}?from={id}",
    customer: "https://admin.example/c/{id}",
  };
  const id = 'a/../b?c#d"|>$&';
  const fraud = { subscription_id: null, failure_code: "fraud_suspected" };
  await deliver(db, testAlertContext({ settings: settingsOf({ links }) }), [
    [event("order.failed", { ...declined, ...fraud, id, customer_id: ".." })],
  ]);
  const part = "a%2F..%2Fb%3Fc%23d%22%7C%3E%24%26";
  expect(await db("alerts.outbox").pluck("message")).toMatchObject([
    { links: [{ label: "Order", url: `https://admin.example/orders/${part}?from=${part}` }] },
  ]);
});

test("what may have arrived is ended where it may have arrived, and nowhere else", async () => {
  const names = ["refused", "given-up", "waiting", "tried"];
  const settings = settingsOf({
    channels: Object.fromEntries(
      names.map((name) => [name, { kind: "webhook", urlFrom: "ALERT_U", secretFrom: "ALERT_S" }]),
    ),
    defaultChannels: names,
  });
  const alertContext = testAlertContext({ settings });
  await deliver(db, alertContext, [[event("order.failed", declined)]]);
  const rows = (name: string) => db("alerts.outbox").where("channel", name);
  await rows("refused").update({ state: "failed", attempts: 1 });
  await rows("given-up").update({ state: "failed", attempts: 400, maybe_sent: true });
  await rows("waiting").update({ state: "pending", attempts: 0 });
  await rows("tried").update({ state: "pending", attempts: 1, maybe_sent: true });
  const paid = { ...declined, status: "succeeded", updated_at: "2025-03-03T13:00:00.000Z" };
  await deliver(db, alertContext, [[event("order.succeeded", paid)]]);
  const key = "dunning:subscription-9:2";
  const both = ["trigger attempt:1", "resolve recovered"];
  expect(await messagesOf(db, key, "refused")).toEqual(["trigger attempt:1"]);
  expect(await messagesOf(db, key, "given-up")).toEqual(both);
  expect(await messagesOf(db, key, "waiting"), "taken back").toEqual([]);
  expect(await messagesOf(db, key, "tried")).toEqual(both);
});
