import type { Knex } from "knex";
import { isWireId } from "../contract/wire-types.ts";
import { sqlArray } from "../../platform/postgres/values.ts";

/** A chargeback that was opened, as `mirror.chargeback_openings` derives it from all known states. */
export interface Chargeback {
  /** The order's id, or the transaction's where there is no order. */
  key: string;
  /** Number of the opening of its case, from 1: a closed dispute may be opened again. */
  opening: number;
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
  opening: string;
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

const chargebacksIn = (view: "chargebacks" | "chargeback_openings"): string => `
     select c.key, c.opening, c.order_id, c.transaction_id, coalesce(o.customer_id, t.customer_id) as customer_id, o.order_number,
            c.state, c.amount, c.currency, c.opened_at, c.resolved_at, coalesce(o.card_brand, t.card_brand) as card_brand,
            coalesce(o.card_last_four, t.card_last_four) as card_last_four, (
              select coalesce(sum(abs(r.amount)), 0) from mirror.transactions r
              where r.order_id = c.order_id and reports.is_refunded(r.type, r.status)) as refunded
     from mirror.${view} c left join mirror.orders o on o.id = c.order_id
     left join mirror.transactions t on t.id = c.transaction_id`;

/** The chargebacks of these orders and transactions, each as it was opened last. One statement. */
export const findChargebacks = (db: Knex, ids: readonly string[]): Promise<Chargeback[]> =>
  findIn(db, "chargebacks", ids);

/** All openings of these orders' and transactions' chargebacks, of each the first one first. One statement. */
export const findOpenings = (db: Knex, ids: readonly string[]): Promise<Chargeback[]> =>
  findIn(db, "chargeback_openings", ids);

async function findIn(
  db: Knex,
  view: "chargebacks" | "chargeback_openings",
  ids: readonly string[],
): Promise<Chargeback[]> {
  if (ids.length === 0) return [];
  const { rows } = await db.raw<{ rows: ChargebackRow[] }>(
    // An array, unlike a join, uses the view's own indexes, however many chargebacks there are.
    `with asked as materialized (
       select unnest(?::text[]) as key
       union select t.order_id from mirror.transactions t where t.id = any(?::text[]) and t.order_id is not null
     )
     ${chargebacksIn(view)}
     where c.key = any(array(select key from asked)) and c.opened_at is not null order by c.key, c.opening`,
    [sqlArray(ids), sqlArray(ids)],
  );
  return rows.map(toChargeback);
}

/** Where a page of open chargebacks begins: after the chargeback with these values. */
export interface OpenCursor {
  /** Microseconds since 1970, as text. */
  notedAt: string;
  key: string;
}

/**
 * The keys of chargebacks to answer, up to `limit`, by when each was opened last, as an order, or else its sale, shows
 * it. An order's chargeback is here as soon as the order itself shows it. One statement, by indexes alone, however many
 * have ended.
 */
export async function listOpenKeys(
  db: Knex,
  { after, limit }: { after?: OpenCursor | undefined; limit: number },
): Promise<OpenCursor[]> {
  const { rows } = await db.raw<{ rows: { key: string; noted_at: string }[] }>(
    // Materialized: else its condition is evaluated for every sale that ever was charged back.
    `with shown as materialized (
       select o.id as key, (select max(x.first_at) from mirror.openings_of_order(o.id, null) x) as at
       from mirror.orders o where o.awaits = 'answer'
       union all
       select coalesce(t.order_id, t.id), (
           select max(x.began_at) from mirror.openings_of_sales(t.order_id, t.id, null) x)
       from mirror.transactions t
       where t.status like 'chargeback%' and not exists (
         select from mirror.versions v
         where v.resource = 'order' and v.id = t.order_id and v.data->>'status' like 'chargeback%')
     ), noted as (
       select key, (extract(epoch from min(at)) * 1000000)::bigint as noted_at from shown where at is not null group by key
     )
     select key, noted_at from noted
     ${after === undefined ? "" : "where (noted_at, key) > (:notedAt::bigint, :key)"}
     order by noted_at, key limit :limit`,
    { ...after, limit },
  );
  return rows.map(({ key, noted_at: notedAt }) => ({ key, notedAt }));
}

/** An open chargeback, as far as sums need it. */
export type OpenChargeback = Pick<Chargeback, "key" | "amountMinor" | "currency" | "openedAt">;

/** The open chargebacks among these keys, the oldest first. One statement, some 40 µs a key. */
export async function findOpenChargebacks(db: Knex, keys: readonly string[]): Promise<OpenChargeback[]> {
  if (keys.length === 0) return [];
  const { rows } = await db.raw<{
    rows: Pick<ChargebackRow, "key" | "amount" | "currency" | "opened_at">[];
  }>(
    `select c.key, c.amount, c.currency, c.opened_at from mirror.chargebacks c
     where c.key = any(?::text[]) and c.opened_at is not null and c.state = 'opened' order by c.opened_at, c.key`,
    [sqlArray(keys)],
  );
  return rows.map(({ key, amount, currency, opened_at: openedAt }) => ({
    key,
    amountMinor: amount === null ? null : BigInt(amount),
    currency,
    openedAt,
  }));
}

/**
 * Chargebacks that ended at or after `since`, the last ended first, among the `lookThrough` that were shown last.
 * `isCut`: there are more than those. Two statements, of some 60 µs a chargeback.
 */
export async function listEndedChargebacks(
  db: Knex,
  { since, lookThrough }: { since: Date; lookThrough: number },
): Promise<{ ended: Chargeback[]; isCut: boolean }> {
  // Most have three states: opened and ended of the order, and its sale's.
  const mostStates = 4 * lookThrough;
  const { rows: keys } = await db.raw<{ rows: { key: string; states: string }[] }>(
    `with state as materialized (
       select v.resource, v.id, v.source_updated_at as at from mirror.versions v
       where v.data->>'status' like 'chargeback%' order by v.source_updated_at desc limit :mostStates
     )
     select key, (select count(*) from state) as states from (
       select s.id as key, s.at from state s where s.resource = 'order'
       union all
       select coalesce(t.order_id, t.id), s.at from state s join mirror.transactions t on t.id = s.id
       where s.resource <> 'order'
     ) shown group by key order by max(at) desc limit :most`,
    { mostStates, most: lookThrough + 1 },
  );
  const { rows } = await db.raw<{ rows: ChargebackRow[] }>(
    `${chargebacksIn("chargebacks")}
     where c.key = any(?::text[]) and c.opened_at is not null and c.state <> 'opened' and c.resolved_at >= ?
     order by c.resolved_at desc, c.key`,
    [sqlArray(keys.slice(0, lookThrough).map(({ key }) => key)), since],
  );
  const isCut = keys.length > lookThrough || Number(keys[0]?.states ?? 0) === mostStates;
  return { ended: rows.map(toChargeback), isCut };
}

/** The chargeback of this key: its order's id, or its transaction's where it has no order. One statement. */
export async function findChargeback(db: Knex, key: string): Promise<Chargeback | null> {
  if (!isWireId(key)) return null;
  return (await findChargebacks(db, [key])).find((found) => found.key === key) ?? null;
}

const toChargeback = (row: ChargebackRow): Chargeback => ({
  key: row.key,
  opening: Number(row.opening),
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

/** The advice on an open chargeback. `refunded`: the amount refunded before, as text. */
export const chargebackAdvice = (refunded: string | null): string =>
  (refunded === null ? "" : `${refunded} was refunded before: send the bank proof of that refund first. `) +
  "Look up the bank's deadline at the service today. Send proof of the sale before it (receipt, delivery, login, " +
  "what the customer wrote), or accept the chargeback there. Ship nothing more. Do not refund the order as " +
  "well: you would pay twice.";
