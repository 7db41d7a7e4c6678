import { expect, test } from "vitest";
import { apply, at, rowOf, sampleEntry, sampleOrder, sampleTransaction, seen, shown } from "../mirror/samples.ts";
import type { Snapshot } from "../../src/core/mirror/snapshot.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { letTimePass } from "./sandbox-history.ts";

const database = useTestDatabase();

const itself = (id: string, status: string, changed: number, seenAt: number): Snapshot =>
  seen("transaction", sampleTransaction({ id, status, updated_at: at(changed) }), seenAt);

const inItsOrder = (id: string, status: string, changed: number): Snapshot => {
  const entry = sampleEntry({ id, status, updated_at: at(changed) });
  const order = sampleOrder({
    id: `order of ${id}`,
    updated_at: at(changed),
    transactions: [entry],
  });
  return shown("order", order, at(changed));
};

test.each([
  ["of two looks at one time the later change counts", "a", 0, 10, 10, "chargeback"],
  ["… that of the transaction itself where both show the same one", "b", 10, 10, 10, "succeeded"],
  ["a later look at itself counts", "c", 0, 11, 10, "succeeded"],
  ["a later look inside its order counts", "d", 0, 9, 10, "chargeback"],
])("as of then, as it was then: %s", async (_name, id, changed, seenAt, changedInOrder, status) => {
  const { db } = database;
  await apply(db, itself(id, "succeeded", changed, seenAt));
  await apply(db, inItsOrder(id, "chargeback", changedInOrder));
  expect(await rowOf(db, "transactions", id)).toMatchObject({ status });
  await letTimePass(db);
  await apply(db, itself(id, "voided", 60, 100));
  const { rows } = await db.raw<{ rows: { status: string }[] }>(
    "select status from reports.transactions(now() - interval '30 minutes') where id = ?",
    [id],
  );
  expect(rows).toEqual([{ status }]);
});

test("as of then, too, a chargeback that was opened and accepted at one time is an accepted one", async () => {
  const { db } = database;
  const ids = Array.from({ length: 16 }, (_, n) => `disputed-${n}`);
  const state = (status: string, seconds: number): Snapshot[] =>
    ids.map((id) => shown("order", sampleOrder({ id, status, updated_at: at(seconds) })));
  await apply(db, ...state("chargeback", 5), ...state("chargeback_accepted", 5));
  await apply(db, ...state("refunded", 9));
  await letTimePass(db);
  await apply(db, ...state("voided", 60));
  const { rows } = await db.raw<{ rows: { state: string }[] }>(
    "select state from reports.chargebacks(now() - interval '30 minutes') where key = any(?)",
    [ids],
  );
  expect(rows).toEqual(ids.map(() => ({ state: "accepted" })));
});
