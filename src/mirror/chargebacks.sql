create or replace view mirror.chargebacks as
select k.key, k.order_id, sale.id as transaction_id, known.state,
       coalesce(sale.amount, o.total) as amount, coalesce(sale.currency, o.currency) as currency,
       least(ordered.first_at, sale.first_at) as opened_at,
       ordered.accepted_at,
       case when known.state = 'dismissed' then known.ended_at else ordered.dismissed_at end as dismissed_at,
       case when known.state <> 'opened' then known.ended_at end as resolved_at,
       coalesce(ordered.cause, sale.cause) as last_cause
from (
  select v.id as key, v.id as order_id from mirror.versions v
  where v.resource = 'order' and v.data->>'status' like 'chargeback%'
  union
  select coalesce(t.order_id, t.id), t.order_id
  from mirror.versions v join mirror.transactions t on t.id = v.id
  where v.resource in ('transaction', 'transaction.inline') and v.data->>'status' like 'chargeback%'
) k
left join mirror.orders o on o.id = k.order_id
left join lateral (
  select shown.*, (
      select min(v.source_updated_at) from mirror.versions v
      where v.resource = 'order' and v.id = k.order_id and v.source_updated_at > shown.last_at
        and v.data->>'status' not like 'chargeback%') as left_at
  from (
    select min(v.source_updated_at) as first_at, max(v.source_updated_at) as last_at,
           min(v.source_updated_at) filter (where v.data->>'status' = 'chargeback_accepted') as accepted_at,
           min(v.source_updated_at) filter (where v.data->>'status' = 'chargeback_dismissed') as dismissed_at,
           (array_agg(v.data->>'status' order by v.source_updated_at desc, v.data->>'status' collate "C" desc))[1] as last_status,
           (array_agg(v.cause order by v.source_updated_at desc, v.data->>'status' collate "C" desc))[1] as cause
    from mirror.versions v
    where v.resource = 'order' and v.id = k.order_id and v.data->>'status' like 'chargeback%'
  ) shown
) ordered on true
left join lateral (
  select t.id, t.amount, t.currency, t.status, shown.*, (
      select min(v.source_updated_at) from mirror.versions v
      where v.resource in ('transaction', 'transaction.inline') and v.id = t.id
        and v.source_updated_at > shown.last_at and v.data->>'status' not like 'chargeback%') as left_at
  from mirror.transactions t
  cross join lateral (
    select min(v.source_updated_at) as first_at, max(v.source_updated_at) as last_at,
           (array_agg(v.cause order by v.source_updated_at desc, v.content_hash))[1] as cause
    from mirror.versions v
    where v.resource in ('transaction', 'transaction.inline') and v.id = t.id
      and v.data->>'status' like 'chargeback%'
  ) shown
  where (t.order_id = k.order_id or (k.order_id is null and t.id = k.key))
    and (shown.first_at is not null or (t.type = 'sale' and t.status not in ('failed', 'voided')))
  order by shown.first_at is null, t.created_at, t.id
  limit 1
) sale on true
cross join lateral (
  select case
      when o.status = 'chargeback_accepted' then 'accepted'
      when o.status = 'chargeback_dismissed' then 'dismissed'
      when o.status like 'chargeback%' then 'opened'
      when ordered.last_status = 'chargeback_accepted' then 'accepted'
      when ordered.first_at is not null then 'dismissed'
      when sale.status like 'chargeback%' then 'opened'
      else 'dismissed' end as state
) now
cross join lateral (
  select now.state, case
      when now.state = 'opened' then null
      when now.state = 'accepted' then ordered.accepted_at
      when ordered.first_at is not null
        then coalesce(ordered.dismissed_at, ordered.left_at, o.source_updated_at)
      else coalesce(sale.left_at, sale.last_at) end as ended_at
) known;
comment on view mirror.chargebacks is 'key: order_id; the transaction''s id where there is no order';
