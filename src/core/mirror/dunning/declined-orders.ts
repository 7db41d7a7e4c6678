import type { Knex } from "knex";
import { sqlArray } from "../../../platform/postgres/values.ts";

/** An order that was declined at least once, with all its states, in whatever order they arrived. */
export interface DeclinedOrder {
  id: string;
  orderNumber: string | null;
  customerId: string | null;
  status: string | null;
  totalMinor: bigint | null;
  currency: string | null;
  subscriptionId: string | null;
  cycle: number | null;
  cardBrand: string | null;
  cardLastFour: string | null;
  failureReason: string | null;
  /** Its sales, oldest first. */
  sales: readonly { status: string | null; at: Date; failureCode: string | null }[];
  /** Its states with status failed, oldest first. */
  failures: readonly { at: Date; failureCode: string | null }[];
  /** Retry data of `order.failed` events, oldest first. */
  dunning: readonly {
    at: Date;
    attempt: number | null;
    nextRetryAt: Date | null;
    isRetryUnknown: boolean;
  }[];
  /** Each time it came to a status that means paid, oldest first, and when it was failed again after that. */
  payments: readonly { at: Date; failedAgainAt: Date | null }[];
  /** The number of its first attempt: above 1 where it was declined and paid before. */
  firstAttempt: number;
  /** When it was voided: after that it is no longer collected. */
  voidedAt: Date | null;
  subscription: {
    status: string | null;
    canceledAt: Date | null;
    /** The detailed subscription's own values; null where it was never seen. */
    detail: { attempt: number | null; nextRetryAt: Date | null } | null;
  } | null;
}

export interface Attempt {
  number: number;
  at: Date;
  failureCode: string | null;
}

/**
 * The declined attempts. The order's own sales count first, since every snapshot of the order shows them all; then the
 * attempts that events mention; then the states alone.
 */
export function declinedAttempts(order: DeclinedOrder): Attempt[] {
  const { sales, failures, dunning, firstAttempt } = order;
  const attempts = new Map<number, Attempt>();
  const codeAt = (at: Date): string | null =>
    failures.findLast((failure) => failure.at <= at)?.failureCode ?? failures[0]?.failureCode ?? null;
  if (sales.length === 0 && dunning.every(({ attempt }) => attempt === null)) {
    for (const [n, { at, failureCode }] of failures.entries()) {
      attempts.set(n + firstAttempt, { number: n + firstAttempt, at, failureCode });
    }
  }
  for (const { attempt, at } of dunning) {
    if (attempt === null || attempt < 1 || attempts.has(attempt)) continue;
    attempts.set(attempt, { number: attempt, at, failureCode: codeAt(at) });
  }
  for (const [n, { status, at, failureCode }] of sales.entries()) {
    if (status !== "failed") continue;
    const number = n + firstAttempt;
    attempts.set(number, { number, at, failureCode: failureCode ?? codeAt(at) });
  }
  return [...attempts.values()].sort((a, b) => a.number - b.number);
}

/** When the retry after the last attempt is due; null: no retry follows. */
export type NextRetry = Date | null | "unknown";

/**
 * The retry after attempt `number`: from the attempt's own event, or from the subscription as long as it describes this
 * attempt. A missing key means unknown, not null.
 */
export function nextRetryAfter({ dunning, subscription }: DeclinedOrder, number: number): NextRetry {
  const told = dunning.findLast(({ attempt, isRetryUnknown }) => !isRetryUnknown && (attempt ?? number) >= number);
  if (told !== undefined) return told.nextRetryAt;
  const detail = subscription?.status === "past_due" ? subscription.detail : null;
  return detail !== null && detail?.attempt === number ? detail.nextRetryAt : "unknown";
}

/** When the order was paid after all; null if it was not. */
export function paidAt({ sales, payments }: DeclinedOrder): Date | null {
  return sales.find(isPaying)?.at ?? payments[0]?.at ?? null;
}

const unpaid: ReadonlySet<string> = new Set(["failed", "pending", "in_progress", "voided"]);

const isPaying = ({ status }: DeclinedOrder["sales"][number]): boolean => status !== null && !unpaid.has(status);

/**
 * An order that was paid and failed again was declined more than once. Each part runs from the previous payment to its
 * own; the last part may be unpaid. Most orders are one part. The parts follow the order's own states, by the service's
 * times: a failed charge next to a payment does not mean that the order failed.
 */
export function declinedParts<Order extends DeclinedOrder>(order: Order): Order[] {
  const parts: Order[] = [];
  let rest = order;
  for (const payment of order.payments) {
    const { at: paid, failedAgainAt: again } = payment;
    if (again === null) continue;
    const isBefore = ({ at }: { at: Date }): boolean => at <= paid;
    const isSaleBefore = (sale: DeclinedOrder["sales"][number]): boolean =>
      isBefore(sale) || (isPaying(sale) && sale.at < again);
    const sales = rest.sales.filter(isSaleBefore);
    // A sale that turned from paid to failed was no declined attempt by then.
    const turned = sales.some(isPaying) ? -1 : sales.findLastIndex(({ status }) => status === "failed");
    parts.push({
      ...rest,
      sales: sales.filter((_, n) => n !== turned),
      failures: rest.failures.filter(isBefore),
      dunning: rest.dunning.filter(isBefore),
      payments: [payment],
      voidedAt: null,
    });
    const dunning = rest.dunning.filter((one) => !isBefore(one));
    const numbers = dunning.flatMap(({ attempt }) => attempt ?? []);
    rest = {
      ...rest,
      sales: rest.sales.filter((sale) => !isSaleBefore(sale)),
      failures: rest.failures.filter((one) => !isBefore(one)),
      dunning,
      payments: rest.payments.filter(({ at }) => at > paid),
      // The service may count on, or from 1 again.
      firstAttempt: numbers.length === 0 ? 1 : Math.max(1, Math.min(...numbers)),
    };
  }
  return [...parts, rest];
}

/** The cycle of a first charge is null, or 1 once it is paid. A planned retry indicates a renewal. */
export const isFirstCharge = ({ cycle, dunning }: DeclinedOrder): boolean =>
  cycle === null || (cycle <= 1 && dunning.every(({ nextRetryAt }) => nextRetryAt === null));

/** The orders of one cycle, merged into one. */
export interface MergedOrder extends DeclinedOrder {
  ids: readonly string[];
}

/**
 * A cycle normally has one order. Should the service make another one for a retry, both share one timeline: that of the
 * newest order, with the attempts of all. `orders` come oldest first.
 */
export function mergedOrders(orders: readonly DeclinedOrder[]): MergedOrder[] {
  const byCycle = new Map<string, MergedOrder>();
  for (const order of orders) {
    const cycle = cycleOf(order);
    const older = byCycle.get(cycle);
    byCycle.set(
      cycle,
      older === undefined
        ? { ...order, ids: [order.id] }
        : {
            ...order,
            ids: [...older.ids, order.id],
            sales: [...older.sales, ...order.sales],
            failures: [...older.failures, ...order.failures],
            dunning: [...older.dunning, ...order.dunning],
            payments: [...older.payments, ...order.payments].sort((a, b) => +a.at - +b.at),
          },
    );
  }
  return [...byCycle.values()];
}

function cycleOf(order: DeclinedOrder): string {
  if (order.subscriptionId === null) return `order:${order.id}`;
  return `${order.subscriptionId}:${isFirstCharge(order) ? "first" : order.cycle}`;
}

interface Row {
  id: string;
  order_number: string | null;
  customer_id: string | null;
  status: string | null;
  total: string | null;
  currency: string | null;
  subscription_id: string | null;
  cycle: number | null;
  card_brand: string | null;
  card_last_four: string | null;
  failure_reason: string | null;
  created_at: Date | null;
  sales: { status: string | null; at: string; code: string | null }[] | null;
  failures: { at: string; code: string | null }[] | null;
  dunning: { at: string; attempt: number | null; next: string | null; is_unknown: boolean | null }[] | null;
  payments: { at: string; again: string | null }[] | null;
  voided_at: Date | null;
  has_subscription: boolean;
  subscription_status: string | null;
  canceled_at: Date | null;
  has_detail: boolean | null;
  detail_attempt: number | null;
  detail_next: Date | null;
}

/**
 * These orders and all other declined orders of their subscriptions, with their whole history. The ids may include
 * orders that were never declined. One statement.
 */
export async function findDeclinedOrders(db: Knex, orderIds: readonly string[]): Promise<DeclinedOrder[]> {
  if (orderIds.length === 0) return [];
  const { rows } = await db
    .raw<{ rows: Row[] }>(statement, [sqlArray(orderIds), sqlArray(orderIds)])
    .options({ name: "alerts-declined" });
  return rows.map(toOrder);
}

const statement = `
  with asked as materialized (
    select o.id from mirror.orders o where o.id = any(?::text[])
    union
    select o.id
    from (select distinct subscription_id from mirror.orders
          where id = any(?::text[]) and subscription_id is not null) s
    join mirror.orders o using (subscription_id)
    -- Without the offset a planner may read the whole history once, instead of that of each order.
    where exists (select from mirror.versions v
                  where v.resource = 'order' and v.id = o.id and v.data->>'status' = 'failed' offset 0)
       or exists (select from mirror.transactions t
                  where t.order_id = o.id and t.type = 'sale' and t.status = 'failed' offset 0)
  )
  select o.id, o.order_number, o.customer_id, o.status, o.total, o.currency, o.subscription_id,
         o.subscription_cycle as cycle, o.card_brand, o.card_last_four, o.failure_reason, o.created_at,
         sale.list as sales, failure.list as failures, dunning.list as dunning, paid.list as payments,
         case when o.status = 'voided' then voided.at end as voided_at,
         s.id is not null as has_subscription, s.status as subscription_status, s.canceled_at,
         s.detail_version <> '' as has_detail, s.attempt_count as detail_attempt, s.next_retry_at as detail_next
  from mirror.orders o
  left join mirror.subscriptions s on s.id = o.subscription_id
  left join lateral (
    select jsonb_agg(jsonb_build_object('status', t.status, 'at', t.created_at, 'code', t.failure_code)
                     order by t.created_at, t.attempt_count, t.updated_at, t.id) as list
    from mirror.transactions t where t.order_id = o.id and t.type = 'sale' and t.created_at is not null
  ) sale on true
  left join lateral (
    select jsonb_agg(jsonb_build_object('at', v.source_updated_at, 'code', reports.code_of(v.data->'failure_code'))
                     order by v.source_updated_at, v.content_hash) as list
    from mirror.versions v
    where v.resource = 'order' and v.id = o.id and v.data->>'status' = 'failed'
  ) failure on true
  left join lateral (
    select jsonb_agg(jsonb_build_object('at', v.source_updated_at, 'attempt', v.data->'attempt_count',
                       'next', v.data->'next_retry_at', 'is_unknown', v.data->'next_retry_unknown')
                     order by v.source_updated_at, v.content_hash) as list
    from mirror.versions v where v.resource = 'order.dunning' and v.id = o.id
  ) dunning on true
  left join lateral (
    select jsonb_agg(jsonb_build_object('at', r.at, 'again', r.again) order by r.at) filter (where r.is_paid) as list
    from (
      select s.at, s.is_paid, lead(s.at) over (order by s.place) as again
      from (
        select w.*, lag(w.is_paid) over (order by w.place) as was_paid
        from (
          select v.source_updated_at as at, reports.is_paid(v.data->>'status') as is_paid,
                 row_number() over (order by v.source_updated_at, reports.status_rank(v.data->>'status'),
                                             v.content_hash) as place
          from mirror.versions v
          where v.resource = 'order' and v.id = o.id
            and (v.data->>'status' = 'failed' or reports.is_paid(v.data->>'status'))
        ) w
      ) s where s.is_paid is distinct from s.was_paid
    ) r
  ) paid on true
  left join lateral (
    select min(v.source_updated_at) as at from mirror.versions v
    where v.resource = 'order' and v.id = o.id and v.data->>'status' = 'voided'
  ) voided on true
  where o.id = any(array(select id from asked))
  order by o.created_at, o.id`;

const toOrder = (row: Row): DeclinedOrder => ({
  id: row.id,
  orderNumber: row.order_number,
  customerId: row.customer_id,
  status: row.status,
  totalMinor: row.total === null ? null : BigInt(row.total),
  currency: row.currency,
  subscriptionId: row.subscription_id,
  cycle: row.cycle,
  cardBrand: row.card_brand,
  cardLastFour: row.card_last_four,
  failureReason: row.failure_reason,
  sales: (row.sales ?? []).map(({ status, at, code }) => ({
    status,
    at: new Date(at),
    failureCode: code,
  })),
  failures: (row.failures ?? []).map(({ at, code }) => ({ at: new Date(at), failureCode: code })),
  dunning: (row.dunning ?? []).map(({ at, attempt, next, is_unknown: isUnknown }) => ({
    at: new Date(at),
    attempt: typeof attempt === "number" ? attempt : null,
    nextRetryAt: timeOf(next),
    isRetryUnknown: isUnknown === true || (next !== null && timeOf(next) === null),
  })),
  // The payments of a voided order were returned.
  payments: (row.payments ?? []).flatMap(({ at, again }) =>
    again === null && row.status === "voided"
      ? []
      : [{ at: new Date(at), failedAgainAt: again === null ? null : new Date(again) }],
  ),
  firstAttempt: 1,
  voidedAt: row.voided_at,
  subscription: row.has_subscription
    ? {
        status: row.subscription_status,
        canceledAt: row.canceled_at,
        detail: row.has_detail === true ? { attempt: row.detail_attempt, nextRetryAt: row.detail_next } : null,
      }
    : null,
});

/** A text that is not a time was not understood: the result is unknown, not null. */
function timeOf(text: unknown): Date | null {
  const at = typeof text === "string" ? new Date(text) : null;
  return at === null || Number.isNaN(at.getTime()) ? null : at;
}
