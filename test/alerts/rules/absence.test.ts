import type { Knex } from "knex";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { AlertMessage } from "../../../src/parts/alerts/message.ts";
import { storeRow } from "../../inbox/stored-events.ts";
import { sampleCustomer, sampleOrder, sampleSubscription, sampleTransaction } from "../../mirror/samples.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { noteBackup } from "../../../src/core/mirror/backups.ts";
import { forgetReceivers } from "../../../src/core/receiver/heartbeats.ts";
import { emptyAll } from "../../worker/worker-stand.ts";
import { deliver, messagesOf } from "../timeline-stand.ts";
import { declined, event, looksBack, standing, sweep, unresolved } from "../sweep-stand.ts";
import { emptyTables } from "../../support/empty-tables.ts";

const database = useTestDatabase();
let db: Knex;
beforeAll(() => {
  ({ db } = database);
});
beforeEach(async () => {
  await emptyAll(db);
  await emptyTables(db, ["reconcile.runs"]);
});

/** Old enough to be looked at: no number below its own can still come. */
const settled = { receivedAgoSeconds: 20 };

describe("silence", () => {
  test("a retry that was due and never came, until it comes", async () => {
    const { clock, alertContext } = standing("2025-03-01T12:00:00.000Z");
    await deliver(db, alertContext, [[event("order.failed", declined)]]);
    clock.advanceHours(47);
    await sweep(db, alertContext);
    expect(await unresolved(db)).not.toContain("silence:retry error open");
    clock.advanceHours(2);
    await sweep(db, alertContext);
    await sweep(db, alertContext);
    expect(await unresolved(db)).toContain("silence:retry error open");
    const paid = { ...declined, status: "succeeded", updated_at: "2025-03-03T13:00:00.000Z" };
    await deliver(db, alertContext, [[event("order.succeeded", paid)]]);
    await sweep(db, alertContext);
    expect(await unresolved(db)).toEqual([]);
    expect(await messagesOf(db, "silence:retry")).toEqual(["trigger opened", "resolve resolved"]);
  });

  test("no retry that came as another order of the cycle", async () => {
    const { clock, alertContext } = standing("2025-03-01T12:00:00.000Z");
    const renewal = { ...declined, subscription_id: "subscription-1", subscription_cycle: 2 };
    await deliver(db, alertContext, [[event("order.failed", renewal)]]);
    clock.advanceHours(49);
    const again = { ...renewal, id: "order-2", status: "succeeded", attempt_count: 1 };
    const times = {
      created_at: "2025-03-02T12:00:10.000Z",
      updated_at: "2025-03-02T12:00:10.000Z",
    };
    await deliver(db, alertContext, [[event("order.succeeded", { ...again, ...times })]]);
    await sweep(db, alertContext);
    expect(await unresolved(db)).toEqual([]);
  });

  test("a renewal whose date passed, and each time it happens again", async () => {
    const { clock, alertContext } = standing("2025-04-01T12:00:00.000Z");
    const subscription = (fields: object) => sampleSubscription({ id: "subscription-9", ...fields });
    const overdue = subscription({
      status: "active",
      next_billing_date: "2025-04-01T12:00:00.000Z",
    });
    await deliver(db, alertContext, [[event("subscription.created", overdue)]]);
    clock.advanceHours(25);
    await sweep(db, alertContext);
    expect(await unresolved(db)).toEqual(["silence:renewal error open"]);
    const charged = subscription({
      status: "active",
      next_billing_date: "2025-05-01T12:00:00.000Z",
      updated_at: "2025-04-02T14:00:00.000Z",
    });
    await deliver(db, alertContext, [[event("subscription.charged", charged)]]);
    await sweep(db, alertContext);
    expect(await unresolved(db)).toEqual([]);
    clock.set("2025-05-02T13:00:00.000Z");
    await sweep(db, alertContext);
    const rows = await db("alerts.alerts")
      .where("key", "silence:renewal")
      .orderBy("occurrence")
      .select("occurrence", "state");
    expect(rows).toEqual([
      { occurrence: 1, state: "resolved" },
      { occurrence: 2, state: "open" },
    ]);
  });

  test("an hour without events that usually brings them, by the service's clock", async () => {
    const { clock, alertContext } = standing("2025-03-31T10:30:00.000Z");
    const at = async (hour: string, count: number) => {
      for (let n = 0; n < count; n++) {
        await storeRow(db, { ...settled, type: "order.created" });
        await db("inbox.receipts").whereNull("event_created_at").update({ event_created_at: hour });
      }
    };
    for (const day of ["2025-03-10", "2025-03-17", "2025-03-24"]) await at(`${day}T09:20:00Z`, 10);
    await sweep(db, alertContext);
    expect(await unresolved(db)).toEqual(["silence:events critical open"]);
    await at("2025-03-31T10:31:00Z", 1);
    await sweep(db, alertContext);
    expect(await unresolved(db)).toEqual([]);
    clock.set("2025-03-31T15:30:00.000Z");
    await sweep(db, alertContext);
    expect(await unresolved(db), "an hour that is usually quiet").toEqual([]);
  });

  test("workers and a scheduler of which nothing is heard; one that says goodbye is not missed", async () => {
    const { clock, alertContext } = standing("2025-03-01T12:00:00.000Z");
    const beats = (name: string, minutes: number) =>
      db.raw("insert into alerts.heartbeats values (?, now() - make_interval(mins => ?))", [name, minutes]);
    await beats("worker:1", 6);
    await beats("worker:2", 1);
    await beats("scheduler", 6);
    await sweep(db, alertContext);
    expect(await unresolved(db), "nobody was there to hear it").toEqual([]);
    clock.advanceHours(0.05);
    await sweep(db, alertContext);
    clock.advanceHours(0.05);
    await sweep(db, alertContext);
    expect(await unresolved(db)).toEqual(["silence:scheduler critical open", "silence:worker critical open"]);
    await db("alerts.heartbeats").update({ beat_at: db.fn.now() });
    await sweep(db, alertContext);
    expect(await unresolved(db)).toEqual([]);
    await db.raw("update alerts.heartbeats set beat_at = now() - interval '7 minutes'");
    clock.advanceHours(1);
    await sweep(db, alertContext);
    expect(await unresolved(db), "after a time without any worker").toEqual([]);
  });

  describe("backups", () => {
    const { alertContext } = standing("2025-03-01T12:00:00.000Z");
    const open = async () => {
      await sweep(db, alertContext);
      return unresolved(db);
    };
    const since = (column: "tried_since" | "taken_at", hours: number) =>
      db.raw(`update mirror.backups set ${column} = now() - make_interval(hours => ?)`, [hours]);
    const overdue = ["silence:backup error open"];

    test("where none was ever begun, none is missed", async () => {
      expect(await open()).toEqual([]);
    });

    test("one that was begun and never verified is missed after 30 hours", async () => {
      await noteBackup(db, null);
      await since("tried_since", 29);
      expect(await open()).toEqual([]);
      await since("tried_since", 31);
      expect(await open()).toEqual(overdue);
    });

    test("a verified one ends it, for 30 hours from its moment, whatever was tried since", async () => {
      await noteBackup(db, new Date().toISOString());
      expect(await open()).toEqual([]);
      await since("taken_at", 31);
      await noteBackup(db, null);
      expect(await open()).toEqual(overdue);
    });
  });

  describe("receivers", () => {
    const beats = (name: string, { secondsAgo = 0, isReady = true, hasStopped = false } = {}) =>
      db.raw(
        `insert into receiver.heartbeats (name, started_at, beat_at, ready_at, stopped_at)
         select :name, at, at, case when :isReady::boolean then at end, case when :hasStopped::boolean then at end
         from (select now() - make_interval(secs => :secondsAgo) as at) t
         on conflict (name) do update set beat_at = excluded.beat_at, ready_at = coalesce(excluded.ready_at, receiver.heartbeats.ready_at), stopped_at = excluded.stopped_at`,
        { name, secondsAgo, isReady, hasStopped },
      );
    const { clock, alertContext } = standing("2025-03-01T12:00:00.000Z");
    const later = async () => {
      clock.advanceHours(30 / 3_600);
      await sweep(db, alertContext);
      return unresolved(db);
    };
    const absent = ["silence:receiver critical open"];

    test("none that was ever heard of is not missed", async () => {
      await later();
      expect(await later()).toEqual([]);
    });

    test("the last one, killed, is missed by the next sweep after two minutes; a restart is not", async () => {
      await beats("receiver:1", { secondsAgo: 115 });
      await later();
      expect(await later()).toEqual([]);
      await beats("receiver:1", { secondsAgo: 125 });
      expect(await later()).toEqual(absent);
      await beats("receiver:2");
      expect(await later()).toEqual([]);
    });

    test("the last one, ended well and not started again, is missed as well", async () => {
      await beats("receiver:1", { secondsAgo: 125, hasStopped: true });
      await later();
      expect(await later()).toEqual(absent);
    });

    test("one that lives and cannot store is none; its row says so", async () => {
      await beats("receiver:1", { secondsAgo: 300 });
      await beats("receiver:1", { isReady: false });
      await later();
      expect(await later()).toEqual(absent);
      const [facts] = await db("alerts.alerts").pluck<{ unready: number }[]>("facts");
      expect(facts?.unready).toBe(1);
    });

    test("one of two that is killed is not an incident: the other takes webhooks", async () => {
      await beats("receiver:1", { secondsAgo: 600 });
      await beats("receiver:2");
      await later();
      expect(await later()).toEqual([]);
    });

    test("after a machine's sleep the receiver has a sweep's time to be heard", async () => {
      await beats("receiver:1");
      await later();
      clock.advanceHours(8);
      await beats("receiver:1", { secondsAgo: 8 * 3_600 });
      expect(await later()).toEqual([]);
      await beats("receiver:1");
      expect(await later()).toEqual([]);
    });

    test("what is dead for an hour is forgotten, but for the newest", async () => {
      await beats("receiver:1", { secondsAgo: 9_000 });
      await beats("receiver:2", { secondsAgo: 8_000 });
      await forgetReceivers(db);
      expect(await db("receiver.heartbeats").pluck("name")).toEqual(["receiver:2"]);
    });
  });

  test("a clock that was a week ahead and is set right does not put off what is missed", async () => {
    const { clock, alertContext } = standing("2025-03-08T12:00:00.000Z");
    await sweep(db, alertContext);
    clock.set("2025-03-01T12:00:00.000Z");
    await sweep(db, alertContext);
    await db.raw("insert into alerts.heartbeats values ('worker:1', now() - make_interval(mins => 6))");
    for (let n = 0; n < 2; n++) {
      clock.advanceHours(0.05);
      await sweep(db, alertContext);
    }
    expect(await unresolved(db)).toContain("silence:worker critical open");
  });

  test("a scheduler that never started, once its workers had time to start it", async () => {
    const { clock, alertContext } = standing("2025-03-01T12:00:00.000Z");
    const minutes = async (count: number) => {
      for (let n = 0; n < count; n++) {
        clock.advanceHours(1 / 60);
        await sweep(db, alertContext);
      }
    };
    await sweep(db, alertContext);
    await minutes(8);
    expect(await unresolved(db)).toEqual([]);
    await minutes(4);
    expect(await unresolved(db)).toEqual(["silence:scheduler critical open"]);
    const [message] = await db("alerts.outbox").pluck<AlertMessage[]>("message");
    expect(message?.advice).not.toMatch(/Redis|queue/);
    expect(message?.title).toBe(
      "No scheduled task has ever started; workers have run since 1 Mar 12:00. The nightly run will not start",
    );
    await db("alerts.heartbeats").insert({ name: "scheduler", beat_at: db.fn.now() });
    await minutes(1);
    expect(await unresolved(db)).toEqual([]);
  });

  test("after a week away: what waits in the inbox is not missing", async () => {
    const { clock, alertContext } = standing("2025-03-01T13:00:00.000Z");
    await deliver(db, alertContext, [[event("order.failed", declined)]]);
    clock.advanceHours(7 * 24);
    await storeRow(db, { receivedAgoSeconds: 5 * 86_400 });
    await sweep(db, alertContext);
    expect(await unresolved(db)).toEqual(["dunning:subscription-9:2 warning open"]);
    await db("inbox.progress").update({ state: "applied" });
    await sweep(db, alertContext);
    expect(await unresolved(db)).toContain("silence:retry error open");
  });

  test("an hour is not silent while the inbox has not been looked through", async () => {
    const { clock, alertContext } = standing("2025-03-31T10:30:00.000Z");
    for (const day of ["10", "17", "24"]) {
      for (let n = 0; n < 10; n++) {
        await storeRow(db, { ...settled, createdAt: `2025-03-${day}T09:20:00Z` });
      }
    }
    await storeRow(db, { createdAt: "2025-03-31T10:20:00Z" });
    await sweep(db, alertContext);
    expect(await db("alerts.alerts").pluck("key"), "it came this moment").toEqual([]);
    await db.raw("update inbox.receipts set received_at = now() - interval '20 seconds'");
    clock.advanceHours(3);
    await sweep(db, alertContext);
    expect(await db("alerts.alerts").pluck("key"), "an hour that is usually quiet").toEqual([]);
    clock.set("2025-03-31T10:31:00.000Z");
    await db("alerts.event_hours").where("hour", "2025-03-31T10:00:00Z").delete();
    await sweep(db, alertContext);
    expect(await db("alerts.alerts").pluck("key")).toEqual(["silence:events"]);
  });

  test("a reconciliation that did not run", async () => {
    const { clock, alertContext } = standing("2025-03-01T03:30:00.000Z");
    await sweep(db, alertContext);
    expect(await unresolved(db), "a deployment that has just begun").toEqual([]);
    clock.advanceHours(27);
    await sweep(db, alertContext);
    expect(await unresolved(db), "it never ran").toEqual(["silence:reconcile critical open"]);
    clock.set("2025-03-01T03:30:00.000Z");
    const run = (startedAt: string) =>
      db("reconcile.runs").insert({
        run_key: startedAt,
        kind: "nightly",
        t0: startedAt,
        started_at: startedAt,
      });
    await run("2025-03-01T03:30:00Z");
    clock.advanceHours(25);
    await sweep(db, alertContext);
    expect(await unresolved(db)).toEqual([]);
    clock.advanceHours(2);
    await sweep(db, alertContext);
    expect(await unresolved(db)).toEqual(["silence:reconcile critical open"]);
    await run("2025-03-02T06:30:00Z");
    await sweep(db, alertContext);
    expect(await unresolved(db)).toEqual([]);
  });
});

describe("what the inbox shows", () => {
  test("an unknown type, a new version, and one id with two bodies are told once", async () => {
    const { alertContext } = standing("2025-03-01T12:00:00.000Z");
    const seq = await storeRow(db, { ...settled, type: "order.created" });
    await sweep(db, alertContext);
    expect(await unresolved(db), "the version that it began with").toEqual([]);
    await storeRow(db, { ...settled, type: "invoice.created" });
    await storeRow(db, { ...settled, type: "order.archived" });
    await storeRow(db, { ...settled, eventId: "evt_same", raw: Buffer.from("1") });
    const other = await storeRow(db, { ...settled, eventId: "evt_same", raw: Buffer.from("2") });
    await db("inbox.receipts").where({ seq: other }).update({ api_version: "2099-01-01" });
    await sweep(db, alertContext);
    await sweep(db, alertContext);
    expect(seq).toBeGreaterThan(0);
    expect(await unresolved(db)).toEqual([
      "event-id:evt_same warning open",
      "new-value:event.api_version:2099-01-01 warning open",
      "new-value:event.type:invoice.created warning open",
    ]);
  });

  test("what is committed after a later number is looked at all the same", async () => {
    const { alertContext } = standing("2025-03-01T12:00:00.000Z");
    let commit = (): void => {};
    const held = new Promise<void>((resolve) => (commit = resolve));
    let stored = (): void => {};
    const isStored = new Promise<void>((resolve) => (stored = resolve));
    const late = db.transaction(async (trx) => {
      await storeRow(trx, { type: "invoice.created" });
      stored();
      await held;
    });
    await isStored;
    await storeRow(db, { type: "order.created" });
    await sweep(db, alertContext);
    commit();
    await late;
    await db.raw("update inbox.receipts set received_at = now() - interval '20 seconds'");
    await sweep(db, alertContext);
    expect(await unresolved(db)).toEqual(["new-value:event.type:invoice.created warning open"]);
  });

  test("signatures that fail above a rate, until they verify again", async () => {
    const { alertContext } = standing("2025-03-01T12:00:00.000Z");
    const answers = (reason: string, times: number) =>
      db("receiver.answers_by_minute").insert({ minute: db.fn.now(), reason, times });
    await answers("no_match", 19);
    await sweep(db, alertContext);
    expect(await unresolved(db)).toEqual([]);
    await answers("malformed_header", 1);
    await sweep(db, alertContext);
    expect(await unresolved(db)).toEqual(["signature:failed critical open"]);
    for (const times of [19, 20, 12, 25]) {
      await db("receiver.answers_by_minute").delete();
      await answers("no_match", times);
      await sweep(db, alertContext);
    }
    expect(await messagesOf(db, "signature:failed"), "about the threshold").toEqual(["trigger opened"]);
    await db.raw("update receiver.answers_by_minute set minute = minute - interval '10 minutes'");
    await sweep(db, alertContext);
    expect(await unresolved(db)).toEqual([]);
  });

  test("signatures that fail ever more often are told again at each doubling, and at the end how bad it was", async () => {
    const { alertContext } = standing("2025-03-01T12:00:00.000Z");
    for (const times of [25, 40, 49, 50, 90, 700, 30, 1_399, 1_400]) {
      await db("receiver.answers_by_minute").delete();
      await db("receiver.answers_by_minute").insert({
        minute: db.fn.now(),
        reason: "no_match",
        times,
      });
      await sweep(db, alertContext);
      await sweep(db, alertContext);
    }
    await db("receiver.answers_by_minute").delete();
    await sweep(db, alertContext);
    const told = await db("alerts.outbox").orderBy("id").pluck<AlertMessage[]>("message");
    const rejected = told.map(({ stage, facts }) => `${stage} ${facts.find(({ value }) => /^\d/.test(value))?.value}`);
    expect(rejected).toEqual(["opened 25", "grown:1 50", "grown:2 700", "grown:3 1400", "resolved 1400 rejected"]);
  });

  test("a dead event, until it is replayed and applied", async () => {
    const { alertContext } = standing("2025-03-01T12:00:00.000Z");
    await deliver(db, alertContext, [[event("order.created", { ...sampleOrder(), total: "a lot" })]]);
    const [key] = await unresolved(db);
    expect(key).toMatch(/^dead:.+ error open$/);
    await db("inbox.progress").update({ state: "applied" });
    await sweep(db, alertContext);
    expect(await unresolved(db)).toEqual([]);
  });

  test("a field, and a status of a transaction, that the interface does not name", async () => {
    const { alertContext } = standing("2025-03-01T12:00:00.000Z");
    await sweep(db, alertContext);
    const order = sampleOrder({ carbon_footprint: 12, items: [], metadata: { any: "thing" } });
    const sale = sampleTransaction({ status: "under_review" });
    await deliver(db, alertContext, [
      [event("order.created", order)],
      [event("transaction.created", sale), event("customer.created", sampleCustomer())],
    ]);
    await looksBack(db);
    await sweep(db, alertContext);
    await sweep(db, alertContext);
    expect(await unresolved(db)).toEqual([
      "new-value:order.field:carbon_footprint warning open",
      "new-value:transaction.status:under_review warning open",
    ]);
  });

  test("a field whose name may be personal, without the name", async () => {
    const { alertContext } = standing("2025-03-01T12:00:00.000Z");
    await sweep(db, alertContext);
    const order = sampleOrder({ "jane@example.com": true, "Jane Doe": true, items: [] });
    await deliver(db, alertContext, [[event("order.created", order)]]);
    await looksBack(db);
    await sweep(db, alertContext);
    await sweep(db, alertContext);
    expect(await unresolved(db)).toEqual(["new-value:order.field:(hidden: no plain field name) warning open"]);
    const stored = await Promise.all([db("alerts.alerts"), db("alerts.seen_values")]);
    expect(JSON.stringify(stored)).not.toMatch(/jane/i);
  });

  test("a status, a decline code and a currency that are named nowhere", async () => {
    const { alertContext } = standing("2025-03-01T12:00:00.000Z");
    const odd = sampleOrder({
      status: "in_review",
      failure_code: "card_too_shiny",
      currency: "xqq",
      transactions: [],
    });
    const again = { ...odd, updated_at: "2025-03-01T13:00:00.000Z" };
    await deliver(db, alertContext, [[event("order.created", odd)], [event("order.created", again)]]);
    expect(await unresolved(db)).toEqual([
      "new-value:order.currency:xqq warning open",
      "new-value:order.failure_code:card_too_shiny warning open",
      "new-value:order.status:in_review warning open",
    ]);
  });
});
