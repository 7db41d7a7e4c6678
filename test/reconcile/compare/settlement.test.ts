import { beforeEach, expect, test } from "vitest";
import { compareAnswer } from "../../../src/parts/reconcile/compare/apply-differences.ts";
import { decodeAnswer } from "../../../src/parts/reconcile/compare/decode-answer.ts";
import { applyStates } from "../../../src/core/mirror/write/apply.ts";
import { apply, at, sampleEntry, sampleOrder, shown } from "../../mirror/samples.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { emptyTables } from "../../support/empty-tables.ts";

const database = useTestDatabase();

/** When the order was read, and when its sale was settled: days after the sale. */
const [dayLater, settledAfter] = [3 * 86_400, 2 * 86_400];
const settled = { status: "succeeded", updated_at: at(settledAfter) };
const refund = { id: "refund-1", type: "refund", amount: 100, status: "succeeded" };

const cases: [what: string, isSettlement: boolean, changedAfter: number, entries: object[]][] = [
  ["its sale was settled with it", true, settledAfter, [settled]],
  ["its sale is on the way", true, settledAfter, [{ ...settled, status: "in_progress" }]],
  ["two seconds lie between them", true, settledAfter + 2, [settled]],
  ["no sale of it was settled", false, settledAfter, [{ status: "pending" }]],
  ["a refund was made with it", false, settledAfter, [settled, { ...refund, created_at: at(settledAfter) }]],
  [
    "a refund was made two seconds before",
    false,
    settledAfter,
    [settled, { ...refund, created_at: at(settledAfter - 2) }],
  ],
  [
    "a refund was made days before",
    true,
    settledAfter,
    [settled, { ...refund, created_at: at(60), updated_at: at(60) }],
  ],
];

beforeEach(() =>
  database.db.transaction(async (trx) => {
    // The history's own trigger lets nobody empty it.
    await trx.raw("set local session_replication_role = replica");
    await emptyTables(trx, ["mirror.orders", "mirror.transactions", "mirror.versions"]);
  }),
);

test.each(cases)(
  "a run and the delivery statement agree on an order whose time changed: %s",
  async (_what, isSettlement, changedAfter, entries) => {
    const { db } = database;
    const order = { status: "succeeded", transactions: [sampleEntry({ status: "pending" })] };
    await apply(db, shown("order", sampleOrder(order)));
    const transactions = entries.map((entry) => sampleEntry({ ...entry }));
    const changed = sampleOrder({ ...order, transactions, updated_at: at(changedAfter) });
    const look = decodeAnswer(
      {
        resource: "order",
        date: new Date(at(dayLater)),
        cause: "reconcile:1",
        expectsOrder: false,
      },
      [changed],
    );
    const sorted = await compareAnswer(db, look, { graceMs: 60_000 }, { isRecheck: false });
    const ofOrder = sorted?.apply.find(({ resource }) => resource === "order");
    expect(ofOrder?.classification.kind).toBe(isSettlement ? "settled" : "behind");

    await db.transaction((trx) => applyStates(trx, look.states));
    const { rows } = await db.raw<{ rows: { at: Date }[] }>(
      "select at from reports.last_changes() where resource = 'order'",
    );
    const [changeAt] = rows.map((row) => row.at.toISOString());
    expect(changeAt === at(changedAfter)).toBe(!isSettlement);
  },
);
