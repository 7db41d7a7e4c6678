import type { Knex } from "knex";
import { sqlArray } from "../platform/sql-array.ts";
import type { GroupState } from "./observation.ts";

/** An order whose states, or whose sale's states, this batch brought, and what brought them. */
export interface TouchedOrder {
  orderId: string;
  cause: string;
}

/** Which orders the states of a batch say something about. */
export function touchedOrders(states: readonly GroupState[]): TouchedOrder[] {
  const touched = new Map<string, string>();
  for (const { group, id, content, cause } of states) {
    if (group === "order") touched.set(id, cause);
    const orderId = content["order_id"];
    if (group.startsWith("transaction") && typeof orderId === "string") touched.set(orderId, cause);
  }
  return [...touched.entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([orderId, cause]) => ({ orderId, cause }));
}

/**
 * A chargeback is what the states say, whatever the event was called: it opens with the first chargeback state
 * of the order or of its sale, and ends with the order's accepted or dismissed state, or when the one that
 * showed it leaves the chargeback states again. Derived from the whole history of the order, so that neither
 * the order of arrival nor the batches matter. One statement; after the states were recorded and the order's
 * row was locked. Source: spec, Order and Transaction statuses; checklist group 19.
 */
export async function deriveChargebacks(
  trx: Knex.Transaction,
  touched: readonly TouchedOrder[],
): Promise<void> {
  if (touched.length === 0) return;
  await trx.raw(deriveStatement, [
    sqlArray(touched.map(({ orderId }) => orderId)),
    sqlArray(touched.map(({ cause }) => cause)),
  ]);
}

const deriveStatement = `
  with touched as (
    select * from unnest(?::text[], ?::text[]) as t(order_id, cause)
  ), order_states as (
    select t.order_id, v.source_updated_at as at, v.data->>'status' as status
    from touched t join mirror.versions v on v.id = t.order_id
    where v.data->>'status' like 'chargeback%' and v.resource = 'order'
  ), sale_states as (
    select t.order_id, v.id as transaction_id, v.source_updated_at as at
    from touched t join mirror.versions v on v.data->>'order_id' = t.order_id
    where v.data->>'status' like 'chargeback%' and v.resource in ('transaction', 'transaction.inline')
  ), shown as (
    select order_id, at from order_states union all select order_id, at from sale_states
  ), opened as (
    select order_id, min(at) as opened_at from shown group by order_id
  ), by_order as (
    select order_id, max(at) as last_at,
           min(at) filter (where status = 'chargeback_accepted') as accepted_at,
           min(at) filter (where status = 'chargeback_dismissed') as dismissed_at,
           (array_agg(status order by at desc, status desc))[1] as last_status
    from order_states group by order_id
  ), by_sale as (
    select order_id, min(transaction_id) as transaction_id, max(at) as last_at
    from sale_states group by order_id
  ), left_by_order as (
    select o.order_id, min(v.source_updated_at) as at
    from by_order o join mirror.versions v on v.resource = 'order' and v.id = o.order_id
    where v.source_updated_at > o.last_at and v.data->>'status' not like 'chargeback%'
    group by o.order_id
  ), left_by_sale as (
    select s.order_id, min(v.source_updated_at) as at
    from by_sale s join mirror.versions v on v.id = s.transaction_id
    where v.resource in ('transaction', 'transaction.inline')
      and v.source_updated_at > s.last_at and v.data->>'status' not like 'chargeback%'
    group by s.order_id
  ), known as (
    select t.order_id, t.cause, opened.opened_at, s.transaction_id, o.accepted_at,
           case when o.order_id is null then ls.at
                else coalesce(o.dismissed_at, case when o.accepted_at is null then lo.at end) end as dismissed_at,
           o.last_status
    from touched t join opened using (order_id)
      left join by_order o using (order_id) left join by_sale s using (order_id)
      left join left_by_order lo using (order_id) left join left_by_sale ls using (order_id)
  )
  insert into mirror.chargebacks as c
    (key, order_id, transaction_id, state, amount, currency, opened_at, accepted_at, dismissed_at, resolved_at, last_cause)
  select k.order_id, k.order_id, sale.id, settled.state, coalesce(sale.amount, orders.total),
         coalesce(sale.currency, orders.currency), k.opened_at, k.accepted_at, k.dismissed_at,
         case settled.state when 'accepted' then k.accepted_at when 'dismissed' then k.dismissed_at end, k.cause
  from known k
    cross join lateral (
      select case when k.last_status = 'chargeback_accepted' then 'accepted'
                  when k.last_status = 'chargeback_dismissed' then 'dismissed'
                  when k.dismissed_at is not null then 'dismissed'
                  when k.accepted_at is not null then 'accepted'
                  else 'opened' end as state) settled
    left join mirror.orders on orders.id = k.order_id
    left join lateral (
      select t.id, t.amount, t.currency from mirror.transactions t
      where t.order_id = k.order_id and (t.id = k.transaction_id or (k.transaction_id is null
        and t.type = 'sale' and t.status not in ('failed', 'voided')))
      order by t.created_at, t.id limit 1) sale on true
  order by k.order_id
  on conflict (key) do update set
    transaction_id = excluded.transaction_id, state = excluded.state, amount = excluded.amount,
    currency = excluded.currency, opened_at = excluded.opened_at, accepted_at = excluded.accepted_at,
    dismissed_at = excluded.dismissed_at, resolved_at = excluded.resolved_at, last_cause = excluded.last_cause
  where (c.transaction_id, c.state, c.amount, c.currency, c.opened_at, c.accepted_at, c.dismissed_at)
    is distinct from (excluded.transaction_id, excluded.state, excluded.amount, excluded.currency,
                      excluded.opened_at, excluded.accepted_at, excluded.dismissed_at)`;

/** Charged-back transactions that belong to no order: their own id is the key. */
export async function deriveOrderlessChargebacks(
  trx: Knex.Transaction,
  states: readonly GroupState[],
): Promise<void> {
  const ids = states
    .filter(({ group, content }) => group === "transaction" && content["order_id"] === undefined)
    .map(({ id }) => id)
    .sort();
  if (ids.length === 0) return;
  await trx.raw(
    `with shown as (
       select v.id, min(v.source_updated_at) as opened_at, max(v.source_updated_at) as last_at
       from mirror.versions v
       where v.id = any(?::text[]) and v.resource = 'transaction' and v.data->>'status' like 'chargeback%'
       group by v.id
     ), left_at as (
       select s.id, min(v.source_updated_at) as at from shown s join mirror.versions v
         on v.resource = 'transaction' and v.id = s.id and v.source_updated_at > s.last_at
       group by s.id
     )
     insert into mirror.chargebacks as c
       (key, transaction_id, state, amount, currency, opened_at, dismissed_at, resolved_at, last_cause)
     select s.id, s.id, case when l.at is null then 'opened' else 'dismissed' end, t.amount, t.currency,
            s.opened_at, l.at, l.at, t.last_cause
     from shown s join mirror.transactions t on t.id = s.id left join left_at l on l.id = s.id
     order by s.id
     on conflict (key) do update set state = excluded.state, amount = excluded.amount,
       currency = excluded.currency, opened_at = excluded.opened_at, dismissed_at = excluded.dismissed_at,
       resolved_at = excluded.resolved_at, last_cause = excluded.last_cause
     where (c.state, c.amount, c.currency, c.opened_at, c.dismissed_at)
       is distinct from (excluded.state, excluded.amount, excluded.currency, excluded.opened_at, excluded.dismissed_at)`,
    [sqlArray(ids)],
  );
}
