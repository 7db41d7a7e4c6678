import type { Knex } from "knex";

/** What a broken identity means: money is wrong (critical), a state is wrong (high), something is odd (warning). */
export type IdentitySeverity = "critical" | "high" | "warning";

/** `enforce`: a breach counts; `observe`: it is kept and counts for nothing yet; `off`: not checked. */
export type IdentityMode = "enforce" | "observe" | "off";

/** What a breach is about; `currency` and `day` for sums. */
export type IdentitySubject =
  "order" | "transaction" | "subscription" | "customer" | "chargeback" | "currency" | "day";

/** A statement that holds for every right mirror. */
export interface Identity {
  /** Stable: settings, findings and reports name it. */
  name: string;
  severity: IdentitySeverity;
  /** Until a setting says otherwise. */
  mode: IdentityMode;
  subject: IdentitySubject;
  /** What holds, for people. */
  holds: string;
  /**
   * SQL over the facts (`gatherFacts`) and the mirror that gives one row a breach: `id` of the subject, `currency`,
   * `at_risk` in minor units of it (null where no sum is known), `expected` and `found` as text; `resource` where it
   * is not that of `subject`; `at`, when what is broken happened or was due, where that is later than the creation of
   * the subject: no figure of before is wrong.
   */
  breaches: string;
  /** SQL for the ids that were looked at, where that is not everything that is settled. */
  examined?: string;
}

/** One subject of which an identity does not hold. */
export interface Breach {
  resource: IdentitySubject;
  id: string;
  currency: string | null;
  /** Minor units; null where no sum is known. */
  atRiskMinor: bigint | null;
  /** ISO 8601; null where it is since the subject was created. */
  at: string | null;
  expected: string;
  found: string;
}

/**
 * What identities look at, in narrow temporary tables: the mirror's rows are wide, and forty passes over them would
 * read them forty times. They are made in one transaction, so that every identity sees the same moment.
 */
const tables = [
  `create temp table moment on commit drop as
   select cast(:now as timestamptz) as now, cast(:asOf as timestamptz) as as_of,
          cast(:timeZone as text) as time_zone, cast(:run as bigint) as run`,

  // The sign of a refund is not shown by the interface: amounts are absolute. Live, the sale of a paid order is
  // unsettled for one to three business days: approved, and not captured yet.
  `create temp table transaction_facts on commit drop as
   select id, type, status, abs(amount) as amount, currency, customer_id, order_id, payment_method_id,
          attempt_count, created_at, updated_at,
          reports.is_captured(type, status) as captured,
          reports.is_unsettled(type, status) as unsettled,
          reports.is_refunded(type, status) as refunded
   from mirror.transactions where deleted_at is null`,

  `create temp table order_facts on commit drop as
   select o.id, o.order_number, o.customer_id, o.status, o.subtotal, o.discount_amount, o.total, o.currency,
          o.failure_code, o.subscription_id, o.subscription_cycle as cycle, o.payment_method_id, o.attempt_count,
          o.created_at, o.updated_at, o.source_updated_at,
          o.data->'applied_coupon' as coupon,
          reports.is_paid(o.status) as paid,
          o.status like 'chargeback%' as disputed,
          coalesce(t.sales, 0) as sales, coalesce(t.captured, 0) as captured,
          coalesce(t.unsettled, 0) as unsettled, coalesce(t.captured_amount, 0) as captured_amount,
          coalesce(t.unsettled_amount, 0) as unsettled_amount, coalesce(t.refunded, 0) as refunded,
          coalesce(t.charged_back, false) as charged_back, t.captured_at, t.last_refund_at, t.touched_at
   from mirror.orders o
   left join (
     select order_id, count(*) filter (where type = 'sale') as sales,
            count(*) filter (where captured) as captured, count(*) filter (where unsettled) as unsettled,
            cast(sum(amount) filter (where captured) as bigint) as captured_amount,
            cast(sum(amount) filter (where unsettled) as bigint) as unsettled_amount,
            cast(sum(amount) filter (where refunded) as bigint) as refunded,
            bool_or(type = 'sale' and status = 'chargeback') as charged_back,
            min(created_at) filter (where captured) as captured_at,
            max(created_at) filter (where refunded) as last_refund_at,
            max(updated_at) as touched_at
     from transaction_facts where order_id is not null group by order_id
   ) t on t.order_id = o.id
   where o.version <> '' and o.deleted_at is null`,

  `create temp table subscription_facts on commit drop as
   select id, customer_id, status, amount, currency, current_period_start, current_period_end,
          current_billing_cycle, total_billing_cycles, next_billing_date, start_date, end_date, canceled_at,
          next_retry_at, created_at, updated_at, source_updated_at,
          data->'billing_cycle' as billing_cycle, data->'applied_coupon' as coupon
   from mirror.subscriptions where version <> '' and deleted_at is null`,

  // What changed after the walk may be known in part: it is left to the next run, with its findings as they are.
  `create temp table in_flight on commit drop as
   with orders as (
     delete from order_facts using moment
     where source_updated_at >= as_of or touched_at >= as_of returning id, subscription_id
   ), subscriptions as (
     delete from subscription_facts using moment
     where source_updated_at >= as_of or id in (select subscription_id from orders)
     returning id, customer_id
   ), transactions as (
     delete from transaction_facts using moment
     where updated_at >= as_of or order_id in (select id from orders) returning id
   )
   select 'order' as resource, id from orders union all select 'chargeback', id from orders
   union all select 'subscription', id from subscriptions union all select 'transaction', id from transactions
   union all select 'customer', customer_id from subscriptions`,

  `create index on transaction_facts (order_id)`,
  `create index on order_facts (id)`,
  `create index on order_facts (subscription_id) where subscription_id is not null`,
  `analyze transaction_facts`,
  `analyze order_facts`,
  `analyze subscription_facts`,
];

/** When identities are checked. */
export interface IdentityMoment {
  /** The service's clock: what is overdue is so by it. */
  now: Date;
  /** What changed at the service at this time or later is not looked at yet. */
  asOf: Date;
  /** IANA name: where days are cut. */
  timeZone: string;
  /** The run whose sums are compared; null compares none. */
  run: number | null;
}

/**
 * Makes the facts. Needs a transaction, and one of REPEATABLE READ to be of one moment; the tables go with it.
 */
export async function gatherFacts(trx: Knex.Transaction, moment: IdentityMoment): Promise<void> {
  for (const [n, sql] of tables.entries()) {
    await (n === 0 ? trx.raw(sql, { ...moment }) : trx.raw(sql));
  }
}

/**
 * SQL for a number in a JSON object, exact; null where there is none. Content is kept as it came, so a field may hold
 * anything, and a cast that fails would stop the check.
 */
export const numberAt = (object: string, key: string): string =>
  `case when jsonb_typeof(${object}->'${key}') = 'number' then cast(${object}->>'${key}' as numeric) end`;

/** The same for a small whole number of days or months. */
export const smallNumberAt = (object: string, key: string): string =>
  `(select n::int from (select ${numberAt(object, key)} as n) given where n between 1 and 3660)`;
