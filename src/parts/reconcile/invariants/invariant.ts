import type { Knex } from "knex";

/** The severity of a broken invariant: wrong money (critical), a wrong state (high), an oddity (warning). */
export type InvariantSeverity = "critical" | "high" | "warning";

/** `enforce`: a breach counts; `observe`: it is recorded but does not count; `off`: not checked. */
export type InvariantMode = "enforce" | "observe" | "off";

/** The subject of a breach; `currency` and `day` for sums. */
export type InvariantSubject =
  | "order"
  | "transaction"
  | "subscription"
  | "customer"
  | "chargeback"
  | "currency"
  | "day";

/** A rule that holds for every correct mirror. */
export interface Invariant {
  /** Stable: settings, findings and reports refer to it. */
  name: string;
  severity: InvariantSeverity;
  /** The default mode, which RECONCILE_IDENTITIES may override; `enforce` where it is left out. */
  mode?: InvariantMode;
  subject: InvariantSubject;
  rule: string;
  /**
   * SQL over the facts (`gatherFacts`) and the mirror that returns one row per breach. `id` of the subject; `currency`;
   * `at_risk` in its minor units (null where no amount is known); `expected` and `found` as text; `resource` where it
   * differs from `subject`; `at`, the time at which the broken part happened or was due, where that is later than the
   * subject's creation: figures of earlier times are not wrong.
   */
  breaches: string;
  /** SQL for the ids examined, where that is not every object outside `in_flight`. */
  examined?: string;
}

/** One subject that breaks an invariant. */
export interface Breach {
  resource: InvariantSubject;
  id: string;
  currency: string | null;
  /** Minor units; null where no amount is known. */
  atRiskMinor: bigint | null;
  /** ISO 8601; null where the breach dates from the subject's creation. */
  at: string | null;
  expected: string;
  found: string;
}

/**
 * The facts that invariants read, in narrow temporary tables: the mirror's rows are wide, and forty invariants would
 * scan them forty times. One transaction creates them all, so every invariant sees the same moment.
 */
const tables = [
  `create temp table moment on commit drop as
   select cast(:now as timestamptz) as now, cast(:asOf as timestamptz) as as_of,
          cast(:timeZone as text) as time_zone, cast(:run as bigint) as run`,

  // The interface does not state the sign of a refund, hence absolute amounts. In production the sale of a paid order
  // is unsettled for one to three business days: approved, and not captured yet.
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

  // Of objects that changed at T0 or later only a part may be here, such as an order without its new sale. They are
  // left to the next run, and their findings stay.
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

/** The moment at which invariants are checked. */
export interface InvariantMoment {
  /** The service's clock, by which a date is overdue. */
  now: Date;
  /** Objects that changed at the service at or after this time are not examined yet. */
  asOf: Date;
  /** IANA name; sets the day boundaries. */
  timeZone: string;
  /** The run whose sums are compared; null compares none. */
  run: number | null;
}

/**
 * Creates the facts. Needs a transaction, with REPEATABLE READ for one consistent moment; the tables are dropped at its
 * end.
 */
export async function gatherFacts(trx: Knex.Transaction, moment: InvariantMoment): Promise<void> {
  for (const [n, sql] of tables.entries()) {
    await (n === 0 ? trx.raw(sql, { ...moment }) : trx.raw(sql));
  }
}

/**
 * SQL for a number in a JSON object, exact; null where there is none. The service's content is stored as received, so a
 * field may hold anything, and a failing cast would stop the check.
 */
export const numberAt = (object: string, key: string): string =>
  `case when jsonb_typeof(${object}->'${key}') = 'number' then cast(${object}->>'${key}' as numeric) end`;

/** The same for a number of days or months: whole, and at most ten years of days. */
export const smallNumberAt = (object: string, key: string): string =>
  `(select n::int from (select ${numberAt(object, key)} as n) given where n between 1 and 3660)`;
