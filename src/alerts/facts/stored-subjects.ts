import type { Knex } from "knex";
import { sqlArray } from "../../platform/sql-array.ts";
import type { Touched } from "../touched.ts";

/** What stored alerts say they are about. */
export interface StoredSubjects {
  declinedOrders: string[];
  disputed: string[];
}

/**
 * The orders and chargebacks among what was touched of which an alert was told before. One statement over the indexes of
 * a small table: every batch asks it.
 */
export async function storedSubjects(
  db: Knex,
  { orders, transactions, subscriptions }: Touched,
): Promise<StoredSubjects> {
  if (orders.size + transactions.size + subscriptions.size === 0) {
    return { declinedOrders: [], disputed: [] };
  }
  const { rows } = await db
    .raw<{ rows: { is_chargeback: boolean; id: string | null }[] }>(
      // One scan of each index for all ids of a batch: a join would look up each of them.
      `select distinct a.rule = 'chargeback' as is_chargeback, coalesce(a.order_id, a.transaction_id) as id
       from alerts.alerts a
       where a.order_id = any(?::text[]) or a.transaction_id = any(?::text[]) or a.subscription_id = any(?::text[])`,
      [sqlArray([...orders]), sqlArray([...transactions]), sqlArray([...subscriptions])],
    )
    .options({ name: "alerts-subjects" });
  return {
    declinedOrders: rows.flatMap(({ is_chargeback, id }) => (is_chargeback ? [] : (id ?? []))),
    disputed: rows.flatMap(({ is_chargeback, id }) => (is_chargeback ? (id ?? []) : [])),
  };
}
