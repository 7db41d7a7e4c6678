import type { Knex } from "knex";
import { inTransaction } from "../../platform/transaction.ts";
import { assessTouched } from "../assess.ts";
import type { AlertDesk, FoundBy } from "../desk.ts";
import { readMark, writeMark } from "../marks.ts";

/** In one sweep: those that still fail must not hold up the others, nor the sweep. */
const atOnce = 20;

interface Row {
  id: string;
  order_id: string | null;
  subscription_id: string | null;
  transaction_id: string | null;
  found_by: FoundBy;
}

/**
 * Tries again what alerts could not describe, some at a time and round and round, each inside a savepoint: it may have been
 * the moment, the data may have changed, or another version runs by now. What succeeds ends the alert that stood for it.
 * Needs a transaction; idempotent.
 */
export async function describeAgain(trx: Knex.Transaction, desk: AlertDesk): Promise<void> {
  const { after } = (await readMark<{ after: string }>(trx, "undescribed")) ?? { after: "0" };
  const rows = await findUndescribed(trx, after);
  if (rows.length === 0 && after === "0") return;
  for (const row of rows) {
    try {
      await inTransaction(trx, (savepoint) => describe(savepoint, desk, row));
    } catch {
      // Its alert stays, and the worker's log said why when it first failed.
    }
  }
  await writeMark(trx, "undescribed", {
    after: rows.length < atOnce ? "0" : (rows.at(-1)?.id ?? "0"),
  });
}

const findUndescribed = (trx: Knex, after: string): Promise<Row[]> =>
  trx("alerts.alerts")
    .where("rule", "alert_undescribed")
    .whereNot("state", "resolved")
    .where("id", ">", after)
    .whereRaw("coalesce(order_id, subscription_id, transaction_id) is not null")
    .orderBy("id")
    .limit(atOnce)
    .select<Row[]>("id", "order_id", "subscription_id", "transaction_id", "found_by");

async function describe(trx: Knex.Transaction, desk: AlertDesk, row: Row): Promise<void> {
  const [orders, transactions, subscriptions] = [
    row.order_id,
    row.transaction_id,
    row.subscription_id,
  ].map((id) => new Set(id === null ? [] : [id])) as [Set<string>, Set<string>, Set<string>];
  await assessTouched(
    trx,
    desk,
    {
      declinedOrders: orders,
      failedOrders: new Set(),
      disputed: new Set([...orders, ...transactions]),
      orders,
      transactions,
      subscriptions,
      unsettled: subscriptions,
      novelties: new Map(),
    },
    row.found_by,
  );
}
