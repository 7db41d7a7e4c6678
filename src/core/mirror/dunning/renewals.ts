import type { Knex } from "knex";
import { isWireId } from "../../contract/wire-types.ts";
import type { NextRetry } from "./declined-orders.ts";

/** A renewal whose charge was declined at least once. */
export interface DeclinedRenewal {
  orderId: string;
  orderNumber: string | null;
  customerId: string | null;
  subscriptionId: string;
  cycle: number;
  totalMinor: bigint | null;
  currency: string | null;
  failureCode: string | null;
  attempts: number;
  /** Null: no retry follows. */
  nextRetryAt: NextRetry;
  lastDeclinedAt: Date | null;
  /** When it was paid after all; null while it is not. */
  recoveredAt: Date | null;
}

/** How many days after its last decline a renewal is searched. The service retries for weeks. */
export const dunningDays = 120;
/** Orders younger than this are searched even when no declined charge of theirs was seen yet. */
const newDays = 3;
const dayMs = 86_400_000;

// Orders are passed as an array: it uses their index, however many orders there are.

interface Row {
  id: string;
  order_number: string | null;
  customer_id: string | null;
  subscription_id: string;
  cycle: number;
  total: string | null;
  currency: string | null;
  failure_code: string | null;
  attempts: number;
  next_retry_at: Date | null;
  is_retry_unknown: boolean;
  last_declined_at: Date | null;
  recovered_at: Date | null;
}

/**
 * The renewals that are declined and neither paid nor given up, by the mirror's state: `reports.dunning_state` calls
 * them in progress. The next retry comes first; those without one come last. At most `limit`, of the last `dunningDays`
 * days. One statement.
 */
export async function unpaidRenewals(
  db: Knex,
  { now, limit }: { now: Date; limit: number },
): Promise<DeclinedRenewal[]> {
  const { rows } = await db.raw<{ rows: Row[] }>(
    `${waiting}
     ${renewalColumns}, retry.at as next_retry_at, retry.is_unknown as is_retry_unknown,
            null::timestamptz as recovered_at
     ${unpaid}
     ${salesOf}
     ${retryOf}
     where ${isUnpaid}
     order by retry.at nulls last, o.created_at desc, o.id limit ?`,
    [daysBefore(now, dunningDays), daysBefore(now, newDays), limit],
  );
  return rows.map(toRenewal);
}

/**
 * The totals of the same renewals by currency, which is null where it is unknown; complete. One statement. Minor units;
 * an unknown total is not added.
 */
export async function sumUnpaidRenewals(
  db: Knex,
  { now }: { now: Date },
): Promise<{ currency: string | null; totalMinor: bigint }[]> {
  const { rows } = await db.raw<{ rows: { currency: string | null; total: string }[] }>(
    `${waiting}
     select o.currency, coalesce(sum(o.total), 0)::text as total
     ${unpaid}
     where ${isUnpaid} group by o.currency`,
    [daysBefore(now, dunningDays), daysBefore(now, newDays)],
  );
  return rows.map(({ currency, total }) => ({ currency, totalMinor: BigInt(total) }));
}

/**
 * The renewals that were declined and paid after all at or after `since`, the latest first; at most `limit`. One
 * statement.
 */
export async function recoveredRenewals(
  db: Knex,
  { since, limit }: { since: Date; limit: number },
): Promise<DeclinedRenewal[]> {
  const { rows } = await db.raw<{ rows: Row[] }>(
    `with declined as materialized (
       select t.order_id as id from mirror.transactions t
       where t.type = 'sale' and t.status = 'failed' and t.deleted_at is null and t.created_at >= ?
     ), paid as materialized (
       select distinct t.order_id as id from mirror.transactions t
       where reports.is_sale_that_stands(t.type, t.status) and t.deleted_at is null and t.created_at >= ?
         and t.order_id in (select id from declined)
     ), recovered as materialized (
       select o.subscription_id, o.subscription_cycle as cycle from mirror.orders o
       where o.id = any(array(select id from paid)) and o.subscription_id is not null and o.subscription_cycle > 1
       union
       -- Paid by another order of the same cycle.
       select o.subscription_id, o.subscription_cycle from mirror.orders o
       where o.awaits = 'payment' and o.id = any(array(select id from declined))
     )
     ${renewalColumns}, null::timestamptz as next_retry_at, true as is_retry_unknown, sale.paid_at as recovered_at
     from reports.renewal_cycles(array(select subscription_id from recovered)) c
     join recovered using (subscription_id, cycle) join mirror.orders o on o.id = c.order_id
     ${salesOf}
     where reports.is_paid(c.status) and sale.paid_at >= ?
     order by sale.paid_at desc, o.id limit ?`,
    [daysBefore(since, dunningDays), since, since, limit],
  );
  return rows.map(toRenewal);
}

/** The renewal of an order that was declined, and its outcome; null where there is none. One statement. */
export async function findRenewal(
  db: Knex,
  orderId: string,
): Promise<(DeclinedRenewal & { state: "in progress" | "recovered" | "lost" }) | null> {
  if (!isWireId(orderId)) return null;
  const { rows } = await db.raw<{
    rows: (Row & { state: "in progress" | "recovered" | "lost" })[];
  }>(
    `${renewalColumns}, reports.dunning_state(c.status, s.status) as state, retry.at as next_retry_at, retry.is_unknown as is_retry_unknown,
            case when reports.is_paid(c.status) then sale.paid_at end as recovered_at
     from mirror.orders o
     join reports.renewal_cycles(array(select x.subscription_id from mirror.orders x where x.id = ?)) c
       on o.id = any(c.orders)
     left join mirror.subscriptions s on s.id = o.subscription_id
     ${salesOf}
     ${retryOf}
     where o.id = ? and (o.status = 'failed' or sale.declined > 0)`,
    [orderId, orderId],
  );
  const [row] = rows;
  return row === undefined ? null : { ...toRenewal(row), state: row.state };
}

/** Orders that may wait for a payment. Bindings: the times from `dunningDays` and `newDays` on. */
const waiting = `with waiting as materialized (
       select w.id, w.subscription_id from mirror.orders w
       where w.awaits = 'payment' and (
         w.id in (
           select t.order_id from mirror.transactions t
           where t.type = 'sale' and t.status = 'failed' and t.deleted_at is null and t.created_at >= ?)
         -- Before a read has shown the declined charge, only its order tells of it.
         or w.created_at >= ? or w.id in (select r.id from mirror.orders r where r.retry_due_at is not null))
     )`;

/** Each renewal once: an order that was replaced by another one of its cycle is not waiting. */
const unpaid = `from reports.renewal_cycles(array(select subscription_id from waiting)) c
     join mirror.orders o on o.id = c.order_id join mirror.subscriptions s on s.id = c.subscription_id`;

const isUnpaid = `o.id = any(array(select id from waiting)) and o.status = 'failed'
       and reports.dunning_state(o.status, s.status) = 'in progress'`;

const renewalColumns = `
     select o.id, o.order_number, o.customer_id, o.subscription_id, o.subscription_cycle as cycle, o.total, o.currency,
            coalesce(o.failure_code, sale.code) as failure_code,
            greatest(1, o.attempt_count, sale.declined)::integer as attempts, sale.last_declined_at`;

const salesOf = `cross join lateral (
       select count(*) filter (where t.status = 'failed') as declined,
              max(t.created_at) filter (where t.status = 'failed') as last_declined_at,
              (array_agg(t.failure_code order by t.created_at desc)
                 filter (where t.status = 'failed' and t.failure_code is not null))[1] as code,
              -- The last one: a renewal may fail again and be paid again.
              max(t.created_at) filter (where reports.is_sale_that_stands(t.type, t.status)) as paid_at
       from mirror.transactions t where t.order_id = any(c.orders) and t.type = 'sale' and t.deleted_at is null
     ) sale`;

/**
 * The same as `nextRetryAfter`: by the last attempt's own event, or by the subscription while it describes that
 * attempt.
 */
const retryOf = `cross join lateral (
       select o.dunning_version <> '' and coalesce(o.attempt_count, 1) >= sale.declined and (
                o.next_retry_at is not null or (
                  select v.data->'next_retry_unknown' is null from mirror.versions v
                  where v.resource = 'order.dunning' and v.id = o.id
                  order by v.source_updated_at desc, v.data->'attempt_count' desc nulls last limit 1)) as by_event,
              s.status = 'past_due' and s.detail_version <> ''
                and s.attempt_count = greatest(1, o.attempt_count, sale.declined) as by_subscription
       -- Without the offset it is computed for each of its uses.
       offset 0
     ) told
     cross join lateral (
       select case when told.by_event then o.next_retry_at when told.by_subscription then s.next_retry_at end as at,
              told.by_event is not true and told.by_subscription is not true as is_unknown
     ) retry`;

const daysBefore = (at: Date, days: number): Date => new Date(at.getTime() - days * dayMs);

const toRenewal = (row: Row): DeclinedRenewal => ({
  orderId: row.id,
  orderNumber: row.order_number,
  customerId: row.customer_id,
  subscriptionId: row.subscription_id,
  cycle: row.cycle,
  totalMinor: row.total === null ? null : BigInt(row.total),
  currency: row.currency,
  failureCode: row.failure_code,
  attempts: row.attempts,
  nextRetryAt: row.is_retry_unknown ? "unknown" : row.next_retry_at,
  lastDeclinedAt: row.last_declined_at,
  recoveredAt: row.recovered_at,
});
