import type { Knex } from "knex";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { redactMessages } from "../../src/parts/alerts/redact-messages.ts";
import { applyAnswer } from "../../src/core/worker/apply-answers.ts";
import { applyBatch } from "../../src/core/worker/apply-batch.ts";
import { at, rowOf, sampleCustomer, sampleEntry, sampleOrder, sampleTransaction, seen } from "../mirror/samples.ts";
import { progressOf } from "../inbox/stored-events.ts";
import { acceptAlerts, refuseAlerts } from "../alerts/refused-alerts.ts";
import { messagesOf, sendDue, storeBodies } from "../alerts/timeline-stand.ts";
import { sweep, unresolved } from "../alerts/sweep-stand.ts";
import { testAlertContext, toldTo } from "../alerts/test-alert-context.ts";
import { type TestDatabase, createTestDatabase } from "../support/database.ts";
import { applyDeps, emptyAll, storeEvent } from "./worker-stand.ts";
import { anyText } from "../support/any-text.ts";

let database: TestDatabase;
let db: Knex;
beforeAll(async () => {
  database = await createTestDatabase();
  ({ db } = database);
});
afterAll(() => database.destroy());
beforeEach(() => emptyAll(db));

const statesOf = (seqs: readonly number[]) => Promise.all(seqs.map(async (seq) => (await progressOf(db, seq)).state));

const declined = (id: string, fields: Record<string, unknown> = {}) =>
  sampleOrder({ id, status: "failed", failure_code: "expired_card", transactions: [], ...fields });

/** What waits for the day's list of an alert. */
const listedOf = (key: string): Promise<string[]> =>
  db("alerts.digest_items as i")
    .join("alerts.alerts as a", "a.id", "i.alert_id")
    .where("a.key", key)
    .pluck<string[]>("i.stage");

afterEach(() => acceptAlerts(db));

describe("a transaction of a customer that has no currency", () => {
  test("leaves all later declines of the customer to be applied and told", async () => {
    const paid = sampleOrder({
      id: "paid",
      transactions: [sampleEntry({ id: "paid-sale", currency: 840 })],
    });
    const seqs = [
      await storeEvent(db, "order.succeeded", paid),
      await storeEvent(db, "order.failed", declined("one")),
      await storeEvent(db, "order.failed", declined("two", { total: null, currency: 978 })),
    ];
    await applyBatch(applyDeps(db), seqs.slice(0, 1));
    await applyBatch(applyDeps(db), seqs.slice(1));
    expect((await statesOf(seqs)).slice(0, 2)).toEqual(["applied", "applied"]);
    expect(await listedOf("decline:one")).toEqual(["attempt:1"]);
    expect(await unresolved(db)).not.toContainEqual(expect.stringContaining("undescribed"));
  });
});

describe("an alert that cannot be written", () => {
  test("is named in its place, and the events and the other alerts of its batch are not touched", async () => {
    await refuseAlerts(db, "decline:bad");
    const seqs: number[] = [];
    for (const id of ["a", "b", "bad", "c", "d"]) {
      seqs.push(await storeEvent(db, "order.failed", declined(id)));
    }
    const deps = applyDeps(db);
    await applyBatch(deps, seqs);
    expect(await statesOf(seqs)).toEqual(seqs.map(() => "applied"));
    expect(await unresolved(db)).toEqual([
      ...["a", "b", "c", "d"].map((id) => `decline:${id} warning open`),
      "undescribed:order:bad error open",
    ]);
    const { message } = await db("alerts.outbox as o")
      .join("alerts.alerts as a", "a.id", "o.alert_id")
      .where("a.key", "undescribed:order:bad")
      .first<{
        message: { title: string; advice: string; facts: { label: string; value: string }[] };
      }>("message");
    expect(message.title).toContain("1000 minor units of usd");
    expect(message.advice).toContain("node src/bin/tallyhook.js events list --resource bad");
    expect(message.facts).toContainEqual({ label: "Reason", value: "database error 23514" });
    expect(deps.logged()).toContain("an alert could not be composed");
  });

  test("leaves all others of the largest batch to be described", async () => {
    await refuseAlerts(db, "decline:bad");
    const ids = ["bad", ...Array.from({ length: 499 }, (_, n) => `good-${n}`)];
    const seqs = await storeBodies(
      db,
      ids.map((id) =>
        JSON.stringify({
          id: `evt-${id}`,
          type: "order.failed",
          created_at: at(0),
          data: { object: declined(id) },
        }),
      ),
    );
    await applyBatch(applyDeps(db), seqs);
    const alerts = await db("alerts.alerts")
      .groupBy("rule")
      .orderBy("rule")
      .select("rule", db.raw("count(*)::int as n"));
    expect(alerts).toEqual([
      { rule: "alert_undescribed", n: 1 },
      { rule: "decline", n: 499 },
      { rule: "decline_storm", n: 1 },
    ]);
  });

  test("is described by the next sweep, and the alert that stood for it ends", async () => {
    await refuseAlerts(db, "decline:bad");
    const seq = await storeEvent(db, "order.failed", declined("bad"));
    await applyBatch(applyDeps(db), [seq]);
    await sendDue(db);
    await sweep(db, testAlertContext());
    expect(await unresolved(db)).toEqual(["undescribed:order:bad error open"]);
    await acceptAlerts(db);
    await sweep(db, testAlertContext());
    expect(await unresolved(db)).toEqual(["decline:bad warning open"]);
    expect(await listedOf("decline:bad")).toEqual(["attempt:1"]);
    expect(await messagesOf(db, "undescribed:order:bad")).toEqual(["trigger opened", "resolve resolved"]);
  });

  test("names all that failed: a field, a decline that its transaction alone shows, a new value", async () => {
    const card = { ...declined("bad"), status: "in_review", description: "4111 1111 1111 1111" };
    const sale = sampleTransaction({
      id: "sale",
      order_id: "other",
      type: "sale",
      status: "failed",
    });
    const told = sampleOrder({ id: "other", status: "pending", transactions: [] });
    const alike = [
      await storeEvent(db, "order.succeeded", told),
      await storeEvent(db, "order.updated", card),
      await storeEvent(db, "transaction.failed", sale),
    ];
    await applyBatch(applyDeps(db), alike);
    const expected = (await unresolved(db)).filter((key) => !key.startsWith("undescribed:"));
    expect(expected).toEqual([
      "card-number:order:description critical open",
      "decline:other warning open",
      "new-value:order.status:in_review warning open",
    ]);

    await emptyAll(db);
    await refuseAlerts(db, "", "if new.rule <> 'alert_undescribed' then raise exception 'no'; end if");
    const seqs = [
      await storeEvent(db, "order.succeeded", told),
      await storeEvent(db, "order.updated", card),
      await storeEvent(db, "transaction.failed", sale),
    ];
    await applyBatch(applyDeps(db), seqs);
    const named = await unresolved(db);
    expect(named.every((key) => key.startsWith("undescribed:"))).toBe(true);
    expect(named.length).toBeGreaterThan(1);
    await sweep(db, testAlertContext());
    expect(await unresolved(db)).toEqual(named);
    await acceptAlerts(db);
    await sweep(db, testAlertContext());
    expect(await unresolved(db)).toEqual(expected);
  });

  test("keeps what failed first when something else of the same order fails", async () => {
    await refuseAlerts(db, "", "if new.rule <> 'alert_undescribed' then raise exception 'no'; end if");
    const first = { ...declined("bad"), description: "4111 1111 1111 1111" };
    await applyBatch(applyDeps(db), [await storeEvent(db, "order.failed", first)]);
    const later = {
      ...declined("bad"),
      status: "in_review",
      updated_at: "2025-03-02T13:00:00.000Z",
    };
    await applyBatch(applyDeps(db), [await storeEvent(db, "order.updated", later)]);
    await acceptAlerts(db);
    await sweep(db, testAlertContext());
    expect(await unresolved(db)).toEqual([
      "card-number:order:description critical open",
      // A status that is named nowhere says neither that the order was paid nor that it was not.
      "decline:bad warning open",
      "new-value:order.status:in_review warning open",
    ]);
  });

  test("ends also where it is about a customer, an event or a time that cannot be", async () => {
    await refuseAlerts(db, "", "if new.rule <> 'alert_undescribed' then raise exception 'no'; end if");
    const future = sampleOrder({ id: "late", updated_at: "2099-01-01T00:00:00.000Z" });
    const seqs = [
      await storeEvent(db, "customer.updated", sampleCustomer({ name: "4111 1111 1111 1111" })),
      await storeEvent(db, "order.failed", { id: 5 }),
      await storeEvent(db, "order.updated", future),
    ];
    await applyBatch(applyDeps(db), seqs);
    const named = await unresolved(db);
    expect(named.join("\n")).toMatch(/undescribed:card number in the customer:/);
    expect(named.join("\n")).toMatch(/undescribed:dead event:/);
    expect(named.join("\n")).toMatch(/undescribed:state of the future of the order:late/);
    await acceptAlerts(db);
    await sweep(db, testAlertContext());
    const open = await unresolved(db);
    expect(open.filter((key) => key.startsWith("undescribed:"))).toEqual([]);
    expect(open).toContain("card-number:customer:name critical open");
    expect(open.filter((key) => /^(dead:|misdated )/.test(key))).toHaveLength(2);
  });

  test("is not told of an event that was replayed before it could be described", async () => {
    await refuseAlerts(db, "dead:");
    const seq = await storeEvent(db, "order.failed", { id: 5 });
    await applyBatch(applyDeps(db), [seq]);
    await acceptAlerts(db);
    await db("inbox.progress").where({ seq }).update({ state: "applied" });
    await sweep(db, testAlertContext());
    expect(await unresolved(db)).toEqual([]);
    expect(await messagesOf(db, `dead:evt_order.failed`)).toEqual([]);
  });

  test("ends where its person was erased meanwhile, and fails again without harm to its batch", async () => {
    await refuseAlerts(db, "decline:bad");
    const first = await storeEvent(db, "order.failed", declined("bad"));
    await applyBatch(applyDeps(db), [first]);
    await db.transaction((trx) =>
      redactMessages(trx, { customerId: "customer-1", ids: ["bad"], seqs: [first], names: [] }),
    );
    const deps = applyDeps(db);
    const again = await storeEvent(db, "order.failed", declined("bad", { updated_at: at(60) }));
    await applyBatch(deps, [again]);
    expect(await statesOf([again])).toEqual(["applied"]);
    expect(deps.logged()).not.toContain("JSON");
    await acceptAlerts(db);
    await sweep(db, testAlertContext());
    expect(await unresolved(db)).toEqual(["decline:bad warning open"]);
  });

  test("is described by the next event about the same order, and its alert ends with the sweep", async () => {
    await refuseAlerts(db, "decline:bad");
    await applyBatch(applyDeps(db), [await storeEvent(db, "order.failed", declined("bad"))]);
    await sendDue(db);
    await acceptAlerts(db);
    const again = declined("bad", { updated_at: "2025-03-01T13:00:00.000Z", description: "x" });
    await applyBatch(applyDeps(db), [await storeEvent(db, "order.updated", again)]);
    expect(await unresolved(db)).toContain("decline:bad warning open");
    await sweep(db, testAlertContext());
    expect(await unresolved(db)).toEqual(["decline:bad warning open"]);
  });

  test("costs no answer of the service either", async () => {
    await refuseAlerts(db, "decline:");
    const observations = [seen("order", declined("read"), 60)];
    const deps = {
      ...applyDeps(db),
      missingGraceMs: 0,
      client: undefined as never,
      foreignAccount: async () => null,
    };
    const wanted = { resource: "order", id: "read" };
    expect(await applyAnswer(deps, wanted, { observations, unread: [] })).toBeNull();
    expect(await rowOf(db, "orders", "read")).toMatchObject({ status: "failed" });
    expect(await unresolved(db)).toEqual(["undescribed:order:read error open"]);
  });

  test("costs no event even where nothing at all can be written about it", async () => {
    await refuseAlerts(db, "");
    const seqs = [
      await storeEvent(db, "order.failed", declined("bad")),
      await storeEvent(db, "order.failed", { id: 5 }),
    ];
    const deps = applyDeps(db);
    await applyBatch(deps, seqs);
    expect(await statesOf(seqs)).toEqual(["applied", "dead"]);
    expect(deps.logged()).toContain("the alert about alerts that could not be composed failed too");
  });

  test("costs no event where the program itself fails, whatever the event is", async () => {
    const alerts = testAlertContext({ timeZone: "Nowhere/AtAll" });
    const seqs = [
      await storeEvent(db, "order.failed", declined("bad")),
      await storeEvent(db, "order.succeeded", sampleOrder({ id: "paid" })),
    ];
    await applyBatch({ ...applyDeps(db), ...toldTo(alerts) }, seqs);
    expect(await statesOf(seqs)).toEqual(["applied", "applied"]);
    expect(await unresolved(db)).toEqual(["undescribed:order:bad error open"]);
  });

  test("takes no longer than a writer of the mirror has", async () => {
    await refuseAlerts(db, "decline:", "perform pg_sleep(60)");
    const seqs: number[] = [];
    for (const id of ["a", "b", "c", "d", "e", "f"]) {
      seqs.push(await storeEvent(db, "order.failed", declined(id)));
    }
    const writerLimits = { statementMs: 1_000, lockMs: 1_000, transactionMs: 30_000 };
    await applyBatch({ ...applyDeps(db), writerLimits }, seqs);
    expect(await statesOf(seqs)).toEqual(seqs.map(() => "applied"));
    const alerts = await unresolved(db);
    expect(alerts.filter((one) => one.startsWith("undescribed:"))).toHaveLength(6);
  });
});

describe("whatever stands in the fields that a message reads", () => {
  const hostileText = fc.oneof(
    anyText({ maxLength: 60 }),
    fc.constantFrom(
      "",
      "\u0000",
      "\ud800",
      "x".repeat(300),
      "__proto__",
      "-1",
      "NaN",
      "9999-12-31T23:59:59.999Z",
      "0001-01-01T00:00:00Z",
      "275761-01-01T00:00:00Z",
      "4111111111111111",
    ),
  );
  const hostile = fc.oneof(
    hostileText,
    fc.jsonValue({ maxDepth: 3 }),
    fc.constantFrom(null, true, 0, -1, 1.5, 2 ** 53, 1e21, -(2 ** 62), 10 ** 15),
  );
  const fieldsOf = (...names: string[]) =>
    fc.record(Object.fromEntries(names.map((name) => [name, hostile])), { requiredKeys: [] });

  const anyEntry = fieldsOf(
    "id",
    "type",
    "status",
    "amount",
    "currency",
    "failure_code",
    "attempt_count",
    "created_at",
    "updated_at",
  ).map((fields) => sampleEntry({ id: "hostile-sale", ...fields }));
  const anyOrder = fc
    .tuple(
      fieldsOf(
        "order_number",
        "customer_id",
        "status",
        "total",
        "currency",
        "failure_code",
        "failure_reason",
        "subscription_id",
        "subscription_cycle",
        "attempt_count",
        "next_retry_at",
        "payment_method",
        "created_at",
        "updated_at",
        "customer",
      ),
      fc.oneof(fc.array(anyEntry, { maxLength: 3 }), hostile),
      fc.constantFrom("failed", "failed", "chargeback", "succeeded"),
    )
    .map(([fields, transactions, status]) =>
      sampleOrder({ id: "hostile", status, failure_code: "expired_card", ...fields, transactions }),
    );
  const anyTransaction = fieldsOf(
    "type",
    "status",
    "amount",
    "currency",
    "customer_id",
    "order_id",
    "failure_code",
    "payment_method",
    "created_at",
    "updated_at",
  ).map((fields) => sampleTransaction({ id: "hostile-sale", ...fields }));
  const anyCustomer = fieldsOf("email", "name", "phone", "created_at", "updated_at").map((fields) =>
    sampleCustomer(fields),
  );

  test.each([[{ a: 1 }], [5], [true]])("a failure code that is %j is none", async (code) => {
    await emptyAll(db);
    const order = { ...declined("odd"), failure_code: code, transactions: [] };
    await applyBatch(applyDeps(db), [await storeEvent(db, "order.failed", order)]);
    expect(await unresolved(db)).toEqual(["decline:odd warning open"]);
  });

  test("it ends as an event that is applied or cannot be read, and every alert is described", async () => {
    const alerts = testAlertContext();
    const shapes = fc.array(fc.tuple(anyOrder, anyTransaction, anyCustomer), {
      minLength: 20,
      maxLength: 20,
    });
    await fc.assert(
      fc.asyncProperty(shapes, async (given) => {
        await emptyAll(db);
        const deps = { ...applyDeps(db), ...toldTo(alerts) };
        const seqs: number[] = [];
        for (const [n, [order, sale, customer]] of given.entries()) {
          seqs.push(
            await storeEvent(db, "order.failed", { ...order, id: `hostile-${n}` }),
            await storeEvent(db, "transaction.updated", { ...sale, id: `hostile-sale-${n}` }),
            await storeEvent(db, "customer.updated", customer),
          );
        }
        await applyBatch(deps, seqs);
        const last = await storeEvent(db, "order.failed", declined("neighbour"));
        await applyBatch(deps, [last]);
        const rows = await db("inbox.progress").select<{ state: string; reason: string | null }[]>("state", "reason");
        for (const { state, reason } of rows) {
          expect([state, reason]).not.toEqual(["failed", expect.anything()]);
          expect(reason ?? "").not.toMatch(/^attempt/);
        }
        expect(await statesOf([last])).toEqual(["applied"]);
        await sweep(db, alerts);
        const open = await unresolved(db);
        expect(open).toContain("decline:neighbour warning open");
        expect(open.filter((key) => key.startsWith("undescribed:"))).toEqual([]);
      }),
      // To shrink twenty orders would take minutes.
      { numRuns: 4, endOnFailure: true },
    );
  });
});
