import type { Knex } from "knex";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { acknowledgeAlert } from "../../src/alerts/actions.ts";
import { sampleOrder } from "../mirror/samples.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { emptyAll } from "../worker/worker-stand.ts";
import { deliver, messagesOf } from "./story-stand.ts";
import { declined, event, standing, standingClock, sweep } from "./sweep-stand.ts";
import { settingsOf, testDesk } from "./test-desk.ts";

const database = useTestDatabase();
let db: Knex;
beforeAll(() => {
  ({ db } = database);
});
beforeEach(() => emptyAll(db));

test("the last retry is near: the owner hears it once", async () => {
  const { clock, desk } = standing("2025-03-06T12:00:00.000Z");
  const fourth = { ...declined, attempt_count: 4, next_retry_at: "2025-03-08T12:00:00.000Z" };
  await deliver(db, desk, [[event("order.failed", fourth)]]);
  await sweep(db, desk);
  clock.advanceHours(25);
  await sweep(db, desk);
  await sweep(db, desk);
  expect(await messagesOf(db, "dunning:subscription-9:2")).toEqual([
    "trigger attempt:4",
    "trigger last-retry:4",
  ]);
});

test("soft first attempts wait for the digest, but for those that were paid meanwhile", async () => {
  const { clock, desk } = standing(new Date().toISOString());
  const order = (id: string, fields: object = {}) =>
    sampleOrder({
      id,
      status: "failed",
      failure_code: "insufficient_funds",
      transactions: [],
      ...fields,
    });
  await deliver(db, desk, [
    [event("order.failed", order("order-1"))],
    [event("order.failed", order("order-2"))],
  ]);
  await sweep(db, desk);
  expect(await db("alerts.outbox")).toEqual([]);
  const paid = order("order-1", {
    status: "succeeded",
    failure_code: null,
    updated_at: "2025-03-01T13:00:00.000Z",
  });
  await deliver(db, desk, [[event("order.succeeded", paid)]]);
  clock.advanceHours(1);
  await sweep(db, desk);
  await sweep(db, desk);
  const [digest, ...others] = await db("alerts.outbox").select("alert_id", "message");
  expect(others).toEqual([]);
  expect(digest).toMatchObject({
    alert_id: null,
    message: {
      severity: "info",
      items: [{ title: expect.stringContaining("declined: insufficient_funds") as string }],
    },
  });
});

test("a soft decline waits at its first attempt alone, and leaves the digest at its second", async () => {
  const { clock, desk } = standing(new Date().toISOString());
  const soft = { ...declined, failure_code: "insufficient_funds" };
  const second = { ...soft, attempt_count: 2, updated_at: "2025-03-02T12:00:00.000Z" };
  await deliver(db, desk, [[event("order.failed", soft)]]);
  expect(await db("alerts.outbox")).toEqual([]);
  await deliver(db, desk, [[event("order.failed", second)]]);
  expect(await messagesOf(db, "dunning:subscription-9:2")).toEqual(["trigger attempt:2"]);
  clock.advanceHours(1);
  await sweep(db, desk);
  expect(await db("alerts.outbox").whereNull("alert_id")).toEqual([]);
});

test("what commits after the digest of its hour waits for the next one", async () => {
  const { clock, desk } = standing(new Date().toISOString());
  const soft = (id: string) =>
    sampleOrder({ id, status: "failed", failure_code: "do_not_honor", transactions: [] });
  const told = async () => {
    const digests = await db("alerts.outbox").whereNull("alert_id").orderBy("id");
    return digests.map(({ message }) => (message as { items: unknown[] }).items.length);
  };
  clock.advanceHours(1);
  await deliver(db, desk, [[event("order.failed", soft("order-1"))]]);
  await sweep(db, desk);
  await deliver(db, desk, [[event("order.failed", soft("order-2"))]]);
  await sweep(db, desk);
  expect(await told()).toEqual([1]);
  clock.advanceHours(1);
  await sweep(db, desk);
  expect(await told()).toEqual([1, 1]);
});

test("what waits for the end of quiet hours has told nobody, and does not escalate", async () => {
  const now = Date.now();
  const timeOfDay = (hours: number) =>
    new Date(now + hours * 3_600_000).toISOString().slice(11, 16);
  const settings = settingsOf({
    channels: { log: { kind: "stdout" }, boss: { kind: "stdout" } },
    quietHours: { from: timeOfDay(-1), to: timeOfDay(4) },
    escalation: [{ afterMinutes: 30, severities: ["warning"], channels: ["boss"] }],
  });
  const clock = standingClock(new Date(now).toISOString());
  const desk = testDesk({ settings, clock });
  await deliver(db, desk, [[event("order.failed", declined)]]);
  const boss = () => messagesOf(db, "dunning:subscription-9:2", "boss");
  for (const hours of [1, 3.2]) {
    clock.advanceHours(hours);
    await sweep(db, desk);
    expect(await boss()).toEqual([]);
  }
  clock.advanceHours(0.5);
  await sweep(db, desk);
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
  const desk = testDesk({ settings, clock });
  const dispute = sampleOrder({ id: "order-3", status: "chargeback", transactions: [] });
  await deliver(db, desk, [[event("order.chargeback", dispute)]]);
  for (const hours of [0.4, 0.2, 0.2, 1, 1]) {
    clock.advanceHours(hours);
    await sweep(db, desk);
  }
  expect(await messagesOf(db, "chargeback:order-3", "boss")).toEqual([
    "trigger escalated:1",
    "trigger escalated:2",
  ]);
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
  const desk = testDesk({ settings, clock });
  const disputed = sampleOrder({ id: "order-3", status: "chargeback", transactions: [] });
  const soft = { ...declined, failure_code: "insufficient_funds" };
  await deliver(db, desk, [[event("order.chargeback", disputed), event("order.failed", soft)]]);
  for (const id of await db("alerts.alerts").orderBy("id").pluck<string[]>("id")) {
    await acknowledgeAlert({ db, clock }, { id: Number(id), by: "ada", note: null });
  }
  clock.advanceHours(1.1);
  await sweep(db, desk);
  expect(await messagesOf(db, "chargeback:order-3", "boss")).toEqual([]);
  expect(await db("alerts.outbox").whereNull("alert_id")).toEqual([]);
});

test("quiet hours hold back what is not critical until they end", async () => {
  const clock = standingClock("2025-03-01T23:10:00.000Z");
  const settings = settingsOf({ quietHours: { from: "22:00", to: "07:00" } });
  const desk = testDesk({ settings, clock });
  const dispute = sampleOrder({ id: "order-3", status: "chargeback", transactions: [] });
  await deliver(db, desk, [
    [event("order.failed", declined)],
    [event("order.chargeback", dispute)],
  ]);
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
  await deliver(db, testDesk({ settings: settingsOf({ links }) }), [
    [event("order.failed", { ...declined, id, subscription_id: null, customer_id: ".." })],
  ]);
  const part = "a%2F..%2Fb%3Fc%23d%22%7C%3E%24%26";
  expect(await db("alerts.outbox").pluck("message")).toMatchObject([
    { links: [{ label: "Order", url: `https://admin.example/orders/${part}?from=${part}` }] },
  ]);
});

test("what may have arrived is ended where it may have arrived, and nowhere else", async () => {
  const names = ["refused", "given-up", "waiting", "tried"];
  const settings = settingsOf({
    channels: Object.fromEntries(names.map((name) => [name, { kind: "stdout" }])),
    defaultChannels: names,
  });
  const desk = testDesk({ settings });
  await deliver(db, desk, [[event("order.failed", declined)]]);
  const rows = (name: string) => db("alerts.outbox").where("channel", name);
  await rows("refused").update({ state: "failed", attempts: 1 });
  await rows("given-up").update({ state: "failed", attempts: 400, maybe_sent: true });
  await rows("waiting").update({ state: "pending", attempts: 0 });
  await rows("tried").update({ state: "pending", attempts: 1, maybe_sent: true });
  const paid = { ...declined, status: "succeeded", updated_at: "2025-03-03T13:00:00.000Z" };
  await deliver(db, desk, [[event("order.succeeded", paid)]]);
  const key = "dunning:subscription-9:2";
  const both = ["trigger attempt:1", "resolve recovered"];
  expect(await messagesOf(db, key, "refused")).toEqual(["trigger attempt:1"]);
  expect(await messagesOf(db, key, "given-up")).toEqual(both);
  expect(await messagesOf(db, key, "waiting"), "taken back").toEqual([]);
  expect(await messagesOf(db, key, "tried")).toEqual(both);
});
