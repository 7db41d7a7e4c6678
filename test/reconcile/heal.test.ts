import { afterAll, beforeAll, expect, test } from "vitest";
import {
  type Json,
  type TestSandbox,
  aCustomer,
  aSubscription,
  anOrder,
  productsOf,
  startTestSandbox,
} from "../sandbox/harness.ts";
import { advanceDays, firstDay, wrongObjects } from "./planned-changes.ts";
import { acceptAlerts, refuseAlerts } from "../alerts/refused-alerts.ts";
import { none } from "./none.ts";
import { type ReconcileStand, createReconcileStand, fingerprint } from "./reconcile-stand.ts";

let sandbox: TestSandbox;
let stand: ReconcileStand;
let order: Json;
let customer: Json;
let subscription: Json;

beforeAll(async () => {
  sandbox = await startTestSandbox("heal");
  stand = await createReconcileStand(sandbox.url);
  await sandbox.control("POST", "/clock", { now: firstDay });
  customer = await aCustomer(sandbox);
  order = await anOrder(sandbox, customer);
  subscription = await aSubscription(sandbox, customer);
  for (let n = 0; n < 12; n++) await anOrder(sandbox, customer);
  await advanceDays(sandbox, 1);
  await stand.run({ kind: "import" });
});

afterAll(async () => {
  await stand.close();
  await sandbox.close();
});

const findings = (where: object): Promise<Json[]> => stand.database.db("reconcile.findings").where(where).orderBy("id");

test("a first fill makes the mirror equal, and calls nothing of it drift", async () => {
  expect(await wrongObjects(stand, sandbox)).toEqual([]);
  expect(await findings({})).toEqual([]);
});

test("a run after a healed one writes nothing into the mirror", async () => {
  await stand.run();
  const before = await fingerprint(stand);
  const result = await stand.run();
  expect(await fingerprint(stand)).toBe(before);
  expect(result).toMatchObject({
    complete: true,
    totals: { healed: none, left: none, confirmed: none },
  });
  const { equal, ...others } = result.totals.verdicts;
  expect([equal, others]).toEqual([expect.any(Number), {}]);
});

test.each([
  ["orders", "total", "total + 1000", () => order.id],
  ["orders", "status", "'refunded'", () => order.id],
  ["orders", "customer_id", "'another'", () => order.id],
  ["orders", "created_at", "created_at - interval '2 hours'", () => order.id],
  ["orders", "data", "jsonb_set(data, '{order_number}', '\"AAAAAAAA\"')", () => order.id],
  ["orders", "data", 'data || \'{"metadata": {"a": "b"}}\'', () => order.id],
  ["orders", "items", "'[]'", () => order.id],
  ["transactions", "amount", "amount - 1", () => order.transactions[0].id],
  ["transactions", "status", "'refunded'", () => order.transactions[0].id],
  ["transactions", "order_id", "null", () => order.transactions[0].id],
  ["transactions", "attempt_count", "7", () => order.transactions[0].id],
  ["transactions", "inline", 'inline || \'{"status": "voided"}\'', () => order.transactions[0].id],
  ["subscriptions", "next_billing_date", "next_billing_date + interval '1 day'", () => subscription.id],
  ["subscriptions", "attempt_count", "3", () => subscription.id],
  ["customers", "email", "'someone@else.test'", () => customer.id],
  ["customers", "deleted_at", "now()", () => customer.id],
])("a row of %s whose %s was edited by hand is found and healed", async (table, column, value, id) => {
  const { db } = stand.database;
  const read = () => db(`mirror.${table}`).where("id", id()).first(column);
  const right = await read();
  // The run must be dated later than what wrote the row.
  await sandbox.control("POST", "/clock", { advance_seconds: 5 });
  await db.raw(`update mirror.${table} set ${column} = ${value} where id = ?`, [id()]);
  const result = await stand.run();
  expect(await read()).toEqual(right);
  expect(result).toMatchObject({
    complete: true,
    totals: { healed: { mismatch: 1 }, left: none },
  });
  const [finding] = await findings({ object_id: id(), run: result.run.id });
  // Of what an order's lines were before, no history is kept.
  const cause = column === "items" ? "unexplained" : "out_of_band_edit";
  expect(finding).toMatchObject({ class: "mismatch", state: "healed", cause });
  expect(finding.differences.length).toBeGreaterThan(0);
});

test("what a run heals is healed, whether or not its alert can be written", async () => {
  const { db } = stand.database;
  const declining = await aCustomer(sandbox, "card_visa_declined");
  const [product] = await productsOf(sandbox);
  const { body: declined } = await sandbox.call("POST", "/v1/orders", {
    customer_id: declining.id,
    payment_method_id: declining.default_payment_method_id,
    items: [{ product_id: product.id, quantity: 1 }],
  });
  const { id } = declined;
  await sandbox.control("POST", "/clock", { advance_seconds: 5 });
  await refuseAlerts(db, "decline:");
  const result = await stand.run();
  await acceptAlerts(db);
  expect(result).toMatchObject({ complete: true, totals: { left: none } });
  expect(await db("mirror.orders").where({ id }).first("status")).toEqual({ status: "failed" });
  expect(await db("alerts.alerts").where("key", `undescribed:order:${id}`).first("state")).toEqual({
    state: "open",
  });
});

test("a difference in money comes first, with the amount at risk", async () => {
  await sandbox.control("POST", "/clock", { advance_seconds: 5 });
  await stand.database.db("mirror.orders").where("id", order.id).update({ total: 1, customer_id: "another" });
  const result = await stand.run();
  const [finding] = await findings({ object_id: order.id, run: result.run.id });
  expect(finding.differences[0]).toEqual({ field: "total", service: order.total, mirror: 1 });
  expect(finding).toMatchObject({
    amount_at_risk_minor: String(order.total - 1),
    currency: order.currency,
    severity: "high",
  });
});

test("what is only reported is not changed, stays open, and heals when it is gone", async () => {
  const { db } = stand.database;
  await sandbox.control("POST", "/clock", { advance_seconds: 5 });
  await db("mirror.orders").where("id", order.id).update({ currency: "xxx" });
  const before = await fingerprint(stand);
  const reported = await stand.run({ kind: "full" }, { reportOnly: true });
  expect(await fingerprint(stand)).toBe(before);
  expect(reported.totals.left).toEqual({ mismatch: 1 });
  await sandbox.control("POST", "/clock", { advance_seconds: 5 });
  const healed = await stand.run();
  expect(healed.totals).toMatchObject({ healed: { mismatch: 1 }, left: none });
});

test("an empty mirror row and a row that the service never had are found", async () => {
  const { db } = stand.database;
  await sandbox.control("POST", "/clock", { advance_seconds: 5 });
  await db("mirror.orders").where("id", order.id).delete();
  await db.raw(
    `insert into mirror.orders (id, created_at, total, currency, last_cause)
     select 'invented', created_at, 500, 'usd', 'nobody' from mirror.orders limit 1`,
  );
  const result = await stand.run();
  expect(result.totals.healed).toEqual({ missing_here: 1 });
  expect(result.totals.left).toEqual({ missing_there: 1 });
  const [invented] = await findings({ object_id: "invented" });
  expect(invented).toMatchObject({
    class: "missing_there",
    severity: "critical",
    state: "open",
    amount_at_risk_minor: "500",
  });
  await db("mirror.orders").where("id", "invented").delete();
});

test("a customer deleted for good becomes a tombstone, which another look does not revive", async () => {
  const gone = await aCustomer(sandbox);
  await advanceDays(sandbox, 1);
  await stand.run();
  await sandbox.ok("DELETE", `/v1/customers/${gone.id}`);
  await sandbox.control("POST", "/clock", { advance_seconds: 5 });
  const result = await stand.run();
  const row = await stand.database.db("mirror.customers").where("id", gone.id).first();
  expect(row.deleted_at).not.toBeNull();
  expect(result.totals.healed).toMatchObject({ missing_there: 1 });
  const again = await stand.run();
  expect(again.totals).toMatchObject({ healed: none, confirmed: none });
});
