import type { Knex } from "knex";
import { sqlArray } from "../../platform/sql-array.ts";
import type { DeclinedOrder } from "../rules/declined-order.ts";

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
  dunning:
    | { at: string; attempt: number | null; next: string | null; is_unknown: boolean | null }[]
    | null;
  settled_at: Date | null;
  has_subscription: boolean;
  subscription_status: string | null;
  canceled_at: Date | null;
  has_detail: boolean | null;
  detail_attempt: number | null;
  detail_next: Date | null;
}

/**
 * These orders, and all other declined ones of their subscriptions, with everything the history knows of them. One
 * statement. Orders that were never declined may be among them.
 */
export async function findDeclinedOrders(
  db: Knex,
  orderIds: readonly string[],
): Promise<DeclinedOrder[]> {
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
    where exists (select from mirror.versions v
                  where v.resource = 'order' and v.id = o.id and v.data->>'status' = 'failed')
       or exists (select from mirror.transactions t
                  where t.order_id = o.id and t.type = 'sale' and t.status = 'failed')
  )
  select o.id, o.order_number, o.customer_id, o.status, o.total, o.currency, o.subscription_id,
         o.subscription_cycle as cycle, o.card_brand, o.card_last_four, o.failure_reason, o.created_at,
         sale.list as sales, failure.list as failures, dunning.list as dunning, settled.at as settled_at,
         s.id is not null as has_subscription, s.status as subscription_status, s.canceled_at,
         s.detail_version <> '' as has_detail, s.attempt_count as detail_attempt, s.next_retry_at as detail_next
  from asked join mirror.orders o using (id)
  left join mirror.subscriptions s on s.id = o.subscription_id
  left join lateral (
    select jsonb_agg(jsonb_build_object('status', t.status, 'at', t.created_at, 'code', t.failure_code)
                     order by t.created_at, t.attempt_count, t.updated_at, t.id) as list
    from mirror.transactions t where t.order_id = o.id and t.type = 'sale' and t.created_at is not null
  ) sale on true
  left join lateral (
    select jsonb_agg(jsonb_build_object('at', v.source_updated_at, 'code', v.data->'failure_code')
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
    select min(v.source_updated_at) as at from mirror.versions v
    where v.resource = 'order' and v.id = o.id and v.data->>'status' not in ('pending', 'failed')
  ) settled on true
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
  settledAt: row.settled_at,
  subscription: row.has_subscription
    ? {
        status: row.subscription_status,
        canceledAt: row.canceled_at,
        detail:
          row.has_detail === true
            ? { attempt: row.detail_attempt, nextRetryAt: row.detail_next }
            : null,
      }
    : null,
});

/** What is no time was not understood: that is unknown, not null. */
function timeOf(text: unknown): Date | null {
  const at = typeof text === "string" ? new Date(text) : null;
  return at === null || Number.isNaN(at.getTime()) ? null : at;
}
