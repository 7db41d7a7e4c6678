import { afterAll, beforeAll, expect, test } from "vitest";
import { listOrders } from "../../../src/core/contract/resources/orders.ts";
import { causeOf as causeOfFacts } from "../../../src/parts/reconcile/findings/drift-findings.ts";
import type { Difference } from "../../../src/parts/reconcile/findings/findings.ts";
import { applyBatch } from "../../../src/core/worker/apply-batch.ts";
import { storeRow } from "../../inbox/stored-events.ts";
import { type Json, type TestSandbox, aCustomer, anOrder, eventsOf, startTestSandbox } from "../../sandbox/harness.ts";
import { applyDeps } from "../../worker/worker-stand.ts";
import { storeEvent } from "../deliveries.ts";
import { advanceDays, firstDay } from "../planned-changes.ts";
import { none } from "../none.ts";
import { type ReconcileStand, createReconcileStand } from "../reconcile-stand.ts";

let sandbox: TestSandbox;
let stand: ReconcileStand;
let orders: Json[];

beforeAll(async () => {
  sandbox = await startTestSandbox("causes");
  stand = await createReconcileStand(sandbox.url);
  await sandbox.control("POST", "/clock", { now: firstDay });
  const customer = await aCustomer(sandbox);
  orders = [];
  for (let n = 0; n < 5; n++) orders.push(await anOrder(sandbox, customer));
  await advanceDays(sandbox, 1);
  await stand.run({ kind: "import" });
});

afterAll(async () => {
  await stand.close();
  await sandbox.close();
});

/** Refunds an order in part, and gives back the event of it, which nobody has delivered yet. */
async function refund({ id }: Json): Promise<Json> {
  await sandbox.control("POST", "/clock", { advance_seconds: 60 });
  await sandbox.ok("POST", `/v1/orders/${id}/refund`, { amount: 100 });
  return (await eventsOf(sandbox, id)).findLast(({ type }) => type === "order.refunded");
}

const causeOf = async ({ id }: Json): Promise<Json> =>
  stand.database.db("reconcile.findings").where("object_id", id).first("cause", "evidence");

test("a webhook that was missed, and comes after all, came late", async () => {
  const [order] = orders;
  const event = await refund(order);
  await stand.run();
  expect(await causeOf(order)).toMatchObject({ cause: "missed_webhook", evidence: { events: [] } });
  const seq = await storeEvent(stand.database.db, event);
  await applyBatch(applyDeps(stand.database.db), [seq]);
  await stand.run();
  expect(await causeOf(order)).toMatchObject({
    cause: "late",
    evidence: { late_event: event.id, late_received_at: expect.any(String) },
  });
});

test("a second partial refund changes no field of the order, and was missed all the same", async () => {
  const [, , , , order] = orders;
  await refund(order);
  await stand.run();
  await refund(order);
  await stand.run();
  expect(await causeOf(order)).toMatchObject({ cause: "missed_webhook", evidence: { events: [] } });
  const { db } = stand.database;
  const [finding] = await db("reconcile.findings").where("object_id", order.id);
  expect(finding.history).toHaveLength(1);
});

test("what the inbox was told of and the mirror does not show is our own fault", async () => {
  const [, order] = orders;
  const event = await refund(order);
  await storeRow(stand.database.db, {
    eventId: event.id,
    type: event.type,
    createdAt: event.created_at,
    state: "dead",
    resourceType: "order",
    resourceId: order.id,
  });
  expect(await stand.run()).toMatchObject({ totals: { healed: { behind: 1 }, left: none } });
  expect(await causeOf(order)).toMatchObject({
    cause: "our_fault",
    evidence: { events: [{ event_id: event.id, state: "dead" }] },
  });
});

test("an event that is in flight is no drift: what is younger than the grace waits for it", async () => {
  const [, , order] = orders;
  const event = await refund(order);
  const { db } = stand.database;
  const arrivals: Promise<unknown>[] = [];
  // The event arrives while the run waits; then the service's clock passes the grace.
  const arrive = async () => {
    await applyBatch(applyDeps(db), [await storeEvent(db, event)]);
    await sandbox.control("POST", "/clock", { advance_seconds: 601 });
    await stand.deps.client.get(listOrders, { query: { limit: "1" } });
  };
  const graceMs = 600_000;
  const result = await stand.run({ kind: "full" }, { graceMs }, ({ waitMs }) => {
    if (waitMs > 0 && arrivals.length === 0) arrivals.push(arrive());
  });
  await Promise.all(arrivals);
  expect(arrivals).toHaveLength(1);
  expect(result.totals).toMatchObject({ healed: none, left: none });
  expect(Object.keys(result.totals.confirmed)).toEqual(["equal"]);
  expect(await causeOf(order)).toBeUndefined();
});

test("an event that does not come within the grace was missed", async () => {
  const [, , , order] = orders;
  await refund(order);
  const moves: Promise<unknown>[] = [];
  const pass = async () => {
    await sandbox.control("POST", "/clock", { advance_seconds: 601 });
    await stand.deps.client.get(listOrders, { query: { limit: "1" } });
  };
  const result = await stand.run({ kind: "full" }, { graceMs: 600_000 }, ({ waitMs }) => {
    if (waitMs > 0 && moves.length === 0) moves.push(pass());
  });
  await Promise.all(moves);
  expect(result.totals).toMatchObject({ healed: { behind: 1 }, left: none });
  expect(await causeOf(order)).toMatchObject({ cause: "missed_webhook" });
});

test("a state that the history knows and the row does not show is our own fault, event or not", () => {
  const facts = { differences: [], changedAt: new Date(firstDay), events: [] };
  const cause = (isKnownState: boolean) => causeOfFacts({ ...facts, class: "behind", resource: "order", isKnownState });
  expect([cause(true), cause(false)]).toEqual(["our_fault", "missed_webhook"]);
});

test("that all cycles of a subscription are over is announced by no event, unlike a charge before it", () => {
  const end = [
    { field: "status", mirror: "active", service: "completed" },
    { field: "next_billing_date", mirror: "2026-04-01", service: null },
    { field: "updated_at", mirror: firstDay, service: "2026-04-01T00:00:00Z" },
  ];
  const charge = { field: "current_billing_cycle", mirror: 2, service: 3 };
  const cancellation = { field: "status", mirror: "active", service: "canceled" };
  const cause = (differences: Difference[]) =>
    causeOfFacts({
      class: "behind",
      resource: "subscription",
      differences,
      changedAt: new Date(firstDay),
      events: [],
      isKnownState: false,
    });
  expect(cause(end)).toBe("out_of_band_edit");
  expect(cause([...end, charge])).toBe("missed_webhook");
  expect(cause([cancellation, ...end.slice(1)])).toBe("missed_webhook");
});
