import type { Knex } from "knex";
import { beforeEach, expect, test } from "vitest";
import { affectedBy, assessAffected } from "../../src/parts/alerts/assess.ts";
import { eventually } from "../support/eventually.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { emptyAlerts, testAlertContext } from "./test-alert-context.ts";

const database = useTestDatabase();
beforeEach(() => emptyAlerts(database.db));

/** Two orders, of which the first one's lock comes first. */
async function twoOrders(): Promise<[string, string]> {
  const { rows } = await database.db.raw<{ rows: { id: string }[] }>(
    "select id from unnest(array['order-a', 'order-b']) id order by hashtext(id) & 1023",
  );
  return rows.map(({ id }) => id) as [string, string];
}

const storeAlert = (order: string) =>
  database.db("alerts.alerts").insert({
    key: `decline:${order}`,
    rule: "decline",
    severity: "warning",
    stage: "attempt:1",
    order_id: order,
    opened_at: new Date(),
    updated_at: new Date(),
    found_by: "event",
  });

const lock = (db: Knex, order: string) => db.raw("select pg_advisory_xact_lock(7255, hashtext(?) & 1023)", [order]);

/** Whether somebody has the lock of an order, or waits for it. */
async function has(order: string, isGranted: boolean): Promise<boolean> {
  const { rows } = await database.db.raw<{ rows: unknown[] }>(
    `select from pg_locks l join pg_database d on d.oid = l.database and d.datname = current_database()
     where l.locktype = 'advisory' and l.classid = 7255 and l.granted = ? and l.objid = (hashtext(?) & 1023)::oid`,
    [isGranted, order],
  );
  return rows.length > 0;
}

const untilAwaited = (order: string) => eventually(`somebody waits for ${order}`, () => has(order, false));

/** Assesses a transaction in which the one order showed a decline and the other was written. */
const assessing = (declined: string, written: string) =>
  database.db.transaction((trx) => {
    const affected = affectedBy([]);
    affected.declinedOrders.add(declined);
    affected.orders.add(declined).add(written);
    return assessAffected(trx, testAlertContext(), affected, "event");
  });

test("an order that has an alert is locked in its turn, not after those that show a decline", async () => {
  const [first, second] = await twoOrders();
  await storeAlert(first);
  const other = await database.db.transaction();
  await lock(other, first);
  const assessed = assessing(second, first);
  await untilAwaited(first);
  const isSecondLocked = await has(second, true);
  await other.commit();
  await assessed;
  expect(isSecondLocked).toBe(false);
});

test("an alert that another worker stores meanwhile is locked in its turn, too", async () => {
  const [first, second] = await twoOrders();
  const [one, other] = [await database.db.transaction(), await database.db.transaction()];
  await lock(one, first);
  await lock(other, second);
  const assessed = assessing(second, first);
  await untilAwaited(second);
  await storeAlert(first);
  await other.commit();
  await untilAwaited(first);
  const isSecondLocked = await has(second, true);
  await one.commit();
  await assessed;
  expect(isSecondLocked).toBe(false);
});
