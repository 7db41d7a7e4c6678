import type { Knex } from "knex";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { storeRow } from "../inbox/stored-events.ts";
import { sampleOrder, sampleSubscription } from "../mirror/samples.ts";
import { createTestDatabase } from "../support/database.ts";
import type { TestDatabase } from "../support/database.ts";
import { emptyAll } from "../worker/worker-stand.ts";
import { deliver, messagesOf } from "./story-stand.ts";
import { standingClock, sweep, unresolved } from "./sweep-stand.ts";
import { settingsOf, testDesk } from "./test-desk.ts";

let database: TestDatabase;
let db: Knex;
beforeAll(async () => {
  database = await createTestDatabase();
  ({ db } = database);
});
afterAll(() => database.destroy());
beforeEach(async () => {
  await emptyAll(db);
  await db.raw("truncate reconcile.runs cascade");
});

const event = (type: string, object: object, createdAt = "2025-03-01T12:00:00.000Z") => ({
  id: crypto.randomUUID(),
  type,
  created_at: createdAt,
  data: { object },
});

function standing(start: string) {
  const clock = standingClock(start);
  return { clock, desk: testDesk({ clock, serviceClock: clock }) };
}

const declined = sampleOrder({
  id: "order-9",
  status: "failed",
  failure_code: "expired_card",
  subscription_id: "subscription-9",
  subscription_cycle: 2,
  attempt_count: 1,
  next_retry_at: "2025-03-02T12:00:00.000Z",
  transactions: [],
});

describe("silence", () => {
  test("a retry that was due and never came, until it comes", async () => {
    const { clock, desk } = standing("2025-03-01T12:00:00.000Z");
    await deliver(db, desk, [[event("order.failed", declined)]]);
    clock.advanceHours(47);
    await sweep(db, desk);
    expect(await unresolved(db)).not.toContain("silence:retry error open");
    clock.advanceHours(2);
    await sweep(db, desk);
    await sweep(db, desk);
    expect(await unresolved(db)).toContain("silence:retry error open");
    const paid = { ...declined, status: "succeeded", updated_at: "2025-03-03T13:00:00.000Z" };
    await deliver(db, desk, [[event("order.succeeded", paid)]]);
    await sweep(db, desk);
    expect(await unresolved(db)).toEqual([]);
    expect(await messagesOf(db, "silence:retry")).toEqual(["trigger opened", "resolve resolved"]);
  });

  test("a renewal whose date passed, and each time it happens anew", async () => {
    const { clock, desk } = standing("2025-04-01T12:00:00.000Z");
    const subscription = (fields: object) =>
      sampleSubscription({ id: "subscription-9", ...fields });
    const overdue = subscription({
      status: "active",
      next_billing_date: "2025-04-01T12:00:00.000Z",
    });
    await deliver(db, desk, [[event("subscription.created", overdue)]]);
    clock.advanceHours(25);
    await sweep(db, desk);
    expect(await unresolved(db)).toEqual(["silence:renewal error open"]);
    const charged = subscription({
      status: "active",
      next_billing_date: "2025-05-01T12:00:00.000Z",
      updated_at: "2025-04-02T14:00:00.000Z",
    });
    await deliver(db, desk, [[event("subscription.charged", charged)]]);
    await sweep(db, desk);
    expect(await unresolved(db)).toEqual([]);
    clock.set("2025-05-02T13:00:00.000Z");
    await sweep(db, desk);
    const rows = await db("alerts.alerts").orderBy("occurrence").select("occurrence", "state");
    expect(rows).toEqual([
      { occurrence: 1, state: "resolved" },
      { occurrence: 2, state: "open" },
    ]);
  });

  test("an hour without events that usually brings them, by the service's clock", async () => {
    const { clock, desk } = standing("2025-03-31T10:30:00.000Z");
    const at = async (hour: string, count: number) => {
      for (let n = 0; n < count; n++) {
        await storeRow(db, { type: "order.created" });
        await db("inbox.receipts").whereNull("event_created_at").update({ event_created_at: hour });
      }
    };
    for (const day of ["2025-03-10", "2025-03-17", "2025-03-24"]) await at(`${day}T09:20:00Z`, 10);
    await sweep(db, desk);
    expect(await unresolved(db)).toEqual(["silence:events critical open"]);
    await at("2025-03-31T10:31:00Z", 1);
    await sweep(db, desk);
    expect(await unresolved(db)).toEqual([]);
    clock.set("2025-03-31T15:30:00.000Z");
    await sweep(db, desk);
    expect(await unresolved(db), "an hour that is usually quiet").toEqual([]);
  });

  test("workers and a scheduler of which nothing is heard; one that says goodbye is not missed", async () => {
    const { desk } = standing("2025-03-01T12:00:00.000Z");
    const beats = (name: string, minutes: number) =>
      db.raw("insert into alerts.heartbeats values (?, now() - make_interval(mins => ?))", [
        name,
        minutes,
      ]);
    await beats("worker:1", 6);
    await beats("worker:2", 1);
    await beats("scheduler", 6);
    await sweep(db, desk);
    expect(await unresolved(db)).toEqual([
      "silence:scheduler critical open",
      "silence:worker critical open",
    ]);
    await db("alerts.heartbeats").update({ beat_at: db.fn.now() });
    await sweep(db, desk);
    expect(await unresolved(db)).toEqual([]);
  });

  test("a reconciliation that did not run", async () => {
    const { clock, desk } = standing("2025-03-01T03:30:00.000Z");
    await sweep(db, desk);
    expect(await unresolved(db), "a deployment that never reconciled").toEqual([]);
    const run = (startedAt: string) =>
      db("reconcile.runs").insert({
        run_key: startedAt,
        kind: "nightly",
        t0: startedAt,
        started_at: startedAt,
      });
    await run("2025-03-01T03:30:00Z");
    clock.advanceHours(25);
    await sweep(db, desk);
    expect(await unresolved(db)).toEqual([]);
    clock.advanceHours(2);
    await sweep(db, desk);
    expect(await unresolved(db)).toEqual(["silence:reconcile critical open"]);
    await run("2025-03-02T06:30:00Z");
    await sweep(db, desk);
    expect(await unresolved(db)).toEqual([]);
  });
});

describe("what time makes due", () => {
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
});

describe("what the inbox shows", () => {
  test("an unknown type, a new version, and one id with two bodies are told once", async () => {
    const { desk } = standing("2025-03-01T12:00:00.000Z");
    const seq = await storeRow(db, { type: "order.created" });
    await sweep(db, desk);
    expect(await unresolved(db), "the version that it began with").toEqual([]);
    await storeRow(db, { type: "invoice.created" });
    await storeRow(db, { type: "order.archived" });
    await storeRow(db, { eventId: "evt_same", raw: Buffer.from("1") });
    const other = await storeRow(db, { eventId: "evt_same", raw: Buffer.from("2") });
    await db("inbox.receipts").where({ seq: other }).update({ api_version: "2099-01-01" });
    await sweep(db, desk);
    await sweep(db, desk);
    expect(seq).toBeGreaterThan(0);
    expect(await unresolved(db)).toEqual([
      "event-id:evt_same warning open",
      "new-value:event.api_version:2099-01-01 warning open",
      "new-value:event.type:invoice.created warning open",
    ]);
  });

  test("signatures that fail above a rate, until they verify again", async () => {
    const { desk } = standing("2025-03-01T12:00:00.000Z");
    const answers = (reason: string, times: number) =>
      db("receiver.answers_by_minute").insert({ minute: db.fn.now(), reason, times });
    await answers("no_match", 19);
    await sweep(db, desk);
    expect(await unresolved(db)).toEqual([]);
    await answers("malformed_header", 1);
    await sweep(db, desk);
    expect(await unresolved(db)).toEqual(["signature:failed critical open"]);
    await db.raw("update receiver.answers_by_minute set minute = minute - interval '10 minutes'");
    await sweep(db, desk);
    expect(await unresolved(db)).toEqual([]);
  });

  test("a dead event, until it is replayed and applied", async () => {
    const { desk } = standing("2025-03-01T12:00:00.000Z");
    await deliver(db, desk, [[event("order.created", { ...sampleOrder(), total: "a lot" })]]);
    const [key] = await unresolved(db);
    expect(key).toMatch(/^dead:.+ error open$/);
    await db("inbox.progress").update({ state: "applied" });
    await sweep(db, desk);
    expect(await unresolved(db)).toEqual([]);
  });

  test("a status and a decline code that the interface does not name", async () => {
    const { desk } = standing("2025-03-01T12:00:00.000Z");
    const odd = sampleOrder({
      status: "in_review",
      failure_code: "card_too_shiny",
      transactions: [],
    });
    const again = { ...odd, updated_at: "2025-03-01T13:00:00.000Z" };
    await deliver(db, desk, [[event("order.created", odd)], [event("order.created", again)]]);
    expect(await unresolved(db)).toEqual([
      "new-value:order.failure_code:card_too_shiny warning open",
      "new-value:order.status:in_review warning open",
    ]);
  });
});
