import { beforeEach, expect, test } from "vitest";
import { readChanges, readableUntil } from "../../src/core/mirror/changes/read-changes.ts";
import { emptyInbox, storeRow } from "../inbox/stored-events.ts";
import { emptyMirror } from "../mirror/copies.ts";
import {
  apply,
  at,
  sampleCustomer,
  sampleEntry,
  sampleOrder,
  sampleSubscription,
  seen,
  shown,
} from "../mirror/samples.ts";
import { useTestDatabase } from "../support/use-database.ts";

const database = useTestDatabase();
beforeEach(async () => {
  await emptyMirror(database.db);
  await emptyInbox(database.db);
});

const day = 86_400;
/** The first event came at 12:00. */
const firstEvent = () => storeRow(database.db, { createdAt: at(0) });

async function toldOf(...snapshots: Parameters<typeof apply>[1][]): Promise<string[]> {
  const { db } = database;
  const after = await readableUntil(db);
  await apply(db, ...snapshots);
  const { changes } = await readChanges(db, { after, limit: 100 });
  return changes.map(({ kind, cause }) => `${kind}: ${cause}`);
}

test("a refund of an order from before the first event is news, and the order is history", async () => {
  await firstEvent();
  const refund = { id: "refund-1", type: "refund", created_at: at(10), updated_at: at(10) };
  const sale = { created_at: at(-90 * day), updated_at: at(-90 * day) };
  const order = sampleOrder({
    status: "partially_refunded",
    created_at: at(-90 * day),
    updated_at: at(10),
    transactions: [sampleEntry(sale), sampleEntry(refund)],
  });
  expect(await toldOf(shown("order", order, at(10)))).toEqual([
    "order.created: import",
    "order.paid: import",
    "order.refunded: event:1",
    "transaction.created: event:1",
    "transaction.created: import",
  ]);
});

test("a refund from before the first event is history, however it is learned", async () => {
  await firstEvent();
  const times = { created_at: at(-9 * day), updated_at: at(-9 * day) };
  const refund = sampleEntry({ id: "refund-1", type: "refund", ...times });
  const order = sampleOrder({ status: "refunded", ...times, transactions: [refund] });
  const told = await toldOf(seen("order", order, 30));
  expect(told).toHaveLength(4);
  expect(told.filter((line) => !line.endsWith(": import"))).toEqual([]);
});

test("an old subscription did not start now, and is canceled now", async () => {
  await firstEvent();
  const old = { created_at: at(-90 * day), current_billing_cycle: 3 };
  const changed = { ...old, updated_at: at(20) };
  expect(
    await toldOf(
      shown("subscription", sampleSubscription({ id: "late", status: "past_due", ...changed })),
      shown("subscription", sampleSubscription({ id: "over", status: "canceled", ...changed })),
      shown("subscription", sampleSubscription({ id: "paid", status: "active", ...changed })),
      seen("subscription", sampleSubscription({ id: "was", status: "canceled", ...old, updated_at: at(-9 * day) }), 20),
    ),
  ).toEqual([
    "subscription.created: import",
    "subscription.started: import",
    "subscription.past_due: event:1",
    "subscription.created: import",
    "subscription.canceled: event:1",
    "subscription.created: import",
    "subscription.started: import",
    "subscription.created: import",
    "subscription.canceled: import",
  ]);
});

test("what is known already is news, however old the object is", async () => {
  await firstEvent();
  const old = sampleCustomer({ created_at: at(-90 * day), updated_at: at(10) });
  expect(await toldOf(shown("customer", old))).toEqual(["customer.created: import"]);
  const changed = { ...old, first_name: "Joan", updated_at: at(20) };
  expect(await toldOf(shown("customer", changed))).toEqual(["customer.updated: event:1"]);
});

test("what the first event itself tells is news: clocks may differ by an hour", async () => {
  await firstEvent();
  const made = { created_at: at(-3_000), updated_at: at(-3_000) };
  expect(await toldOf(shown("customer", sampleCustomer(made)))).toEqual(["customer.created: event:1"]);
});

test("where no event has ever come, only an import is history", async () => {
  const old = { created_at: at(-90 * day), updated_at: at(-90 * day) };
  const read = { ...seen("customer", sampleCustomer(old), 10), cause: "reconcile:7" };
  expect(await toldOf(read)).toEqual(["customer.created: reconcile:7"]);
});
