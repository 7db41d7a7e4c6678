import type { Knex } from "knex";
import { isWireId } from "../contract/wire-types.ts";
import { sqlArray } from "../platform/postgres/values.ts";

/** A chargeback, as `mirror.chargebacks` derives it from all known states. */
export interface Chargeback {
  /** The order's id, or the transaction's where there is no order. */
  key: string;
  orderId: string | null;
  transactionId: string | null;
  customerId: string | null;
  orderNumber: string | null;
  state: "opened" | "accepted" | "dismissed";
  amountMinor: bigint | null;
  currency: string | null;
  openedAt: Date;
  resolvedAt: Date | null;
  refundedMinor: bigint;
  cardBrand: string | null;
  cardLastFour: string | null;
}

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

const chargebackColumns = `
     select c.key, c.order_id, c.transaction_id, coalesce(o.customer_id, t.customer_id) as customer_id, o.order_number,
            c.state, c.amount, c.currency, c.opened_at, c.resolved_at, coalesce(o.card_brand, t.card_brand) as card_brand,
            coalesce(o.card_last_four, t.card_last_four) as card_last_four, (
              select coalesce(sum(abs(r.amount)), 0) from mirror.transactions r
              where r.order_id = c.order_id and reports.is_refunded(r.type, r.status)) as refunded
     from mirror.chargebacks c left join mirror.orders o on o.id = c.order_id
     left join mirror.transactions t on t.id = c.transaction_id`;

/** The chargebacks of these orders and transactions. One statement. */
export async function findChargebacks(db: Knex, ids: readonly string[]): Promise<Chargeback[]> {
  if (ids.length === 0) return [];
  const { rows } = await db.raw<{ rows: ChargebackRow[] }>(
    // An array, unlike a join, is looked up in the view's own indexes, however many chargebacks there are.
    `with asked as materialized (
       select unnest(?::text[]) as key
       union select t.order_id from mirror.transactions t where t.id = any(?::text[]) and t.order_id is not null
     )
     ${chargebackColumns}
     where c.key = any(array(select key from asked)) and c.opened_at is not null order by c.key`,
    [sqlArray(ids), sqlArray(ids)],
  );
  return rows.map(toChargeback);
}

/**
 * Chargebacks that are open, or ended at or after `endedSince`; the open ones first, and the oldest first, at most `limit`. Reads every chargeback
 * that ever was, which are few. One statement.
 */
export async function listChargebacks(
  db: Knex,
  { endedSince, limit }: { endedSince: Date | "open alone"; limit: number },
): Promise<Chargeback[]> {
  const { rows } = await db.raw<{ rows: ChargebackRow[] }>(
    `${chargebackColumns}
     where c.opened_at is not null and (c.state = 'opened' or c.resolved_at >= ?)
     order by c.state <> 'opened', c.opened_at, c.key limit ?`,
    [endedSince === "open alone" ? "infinity" : endedSince, limit],
  );
  return rows.map(toChargeback);
}

/** The chargeback of this key: its order's id, or its transaction's where it has no order. One statement. */
export async function findChargeback(db: Knex, key: string): Promise<Chargeback | null> {
  if (!isWireId(key)) return null;
  return (await findChargebacks(db, [key])).find((found) => found.key === key) ?? null;
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

/** What to do about an open chargeback. `refunded`: what was refunded before, as text. Pure. */
export const chargebackAdvice = (refunded: string | null): string =>
  (refunded === null
    ? ""
    : `${refunded} was refunded before: send the bank proof of that refund first. `) +
  "Look up the bank's deadline at the service today. Send proof of the sale before it (receipt, delivery, login, " +
  "what the customer wrote), or accept the chargeback there. Ship nothing more. Do not refund the order as " +
  "well: you would pay twice.";
