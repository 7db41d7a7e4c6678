import type { Knex } from "knex";
import { sqlArray } from "../../platform/sql-array.ts";
import type { Chargeback } from "../rules/chargebacks.ts";

interface ChargebackRow {
  key: string;
  order_id: string | null;
  transaction_id: string | null;
  customer_id: string | null;
  order_number: string | null;
  state: Chargeback["state"];
  amount: string | null;
  currency: string | null;
  opened_at: Date;
  resolved_at: Date | null;
  refunded: string;
  card_brand: string | null;
  card_last_four: string | null;
}

/** The chargebacks of these orders and transactions. One statement. */
export async function findChargebacks(db: Knex, ids: readonly string[]): Promise<Chargeback[]> {
  if (ids.length === 0) return [];
  const { rows } = await db.raw<{ rows: ChargebackRow[] }>(
    `with asked as materialized (
       select unnest(?::text[]) as key
       union select t.order_id from mirror.transactions t where t.id = any(?::text[]) and t.order_id is not null
     )
     select c.key, c.order_id, c.transaction_id, coalesce(o.customer_id, t.customer_id) as customer_id, o.order_number,
            c.state, c.amount, c.currency, c.opened_at, c.resolved_at, coalesce(o.card_brand, t.card_brand) as card_brand,
            coalesce(o.card_last_four, t.card_last_four) as card_last_four, (
              select coalesce(sum(abs(r.amount)), 0) from mirror.transactions r
              where r.order_id = c.order_id and r.type = 'refund' and r.status = 'succeeded') as refunded
     from mirror.chargebacks c left join mirror.orders o on o.id = c.order_id
     left join mirror.transactions t on t.id = c.transaction_id
     where c.key in (select key from asked) and c.opened_at is not null order by c.key`,
    [sqlArray(ids), sqlArray(ids)],
  );
  return rows.map(toChargeback);
}

const toChargeback = (row: ChargebackRow): Chargeback => ({
  key: row.key,
  orderId: row.order_id,
  transactionId: row.transaction_id,
  customerId: row.customer_id,
  orderNumber: row.order_number,
  state: row.state,
  amountMinor: row.amount === null ? null : BigInt(row.amount),
  currency: row.currency,
  openedAt: row.opened_at,
  resolvedAt: row.resolved_at,
  refundedMinor: BigInt(row.refunded),
  cardBrand: row.card_brand,
  cardLastFour: row.card_last_four,
});
