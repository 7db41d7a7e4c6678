-- As of a time: mirror.chargebacks (0021) over the states recorded by then, for what was touched since. One order
-- and one transaction after another (collate and limit keep the planner from making all of them): there are few.
create or replace function reports.chargebacks(p_as_of timestamptz default null)
returns table (key text, order_id text, transaction_id text, state text, amount bigint, currency text,
               opened_at timestamptz, resolved_at timestamptz)
language sql stable parallel safe as $$
  with touched as materialized (
    select t.key from reports.touched(p_as_of) t
  ), showing as materialized (
    select v.id as key, v.id as order_id from mirror.versions v
    where p_as_of is not null and v.recorded_at <= p_as_of and v.resource = 'order'
      and v.data->>'status' like 'chargeback%' and v.id in (select key from touched)
    union
    select coalesce(t.order_id, t.id), t.order_id
    from (
      select distinct m.id from mirror.versions v join mirror.transactions m on m.id = v.id
      where p_as_of is not null and v.recorded_at <= p_as_of and v.resource in ('transaction', 'transaction.inline')
        and v.data->>'status' like 'chargeback%' and coalesce(m.order_id, m.id) in (select key from touched)
    ) shown
    cross join lateral (
      select x.id, x.order_id from reports.transactions(p_as_of) x where x.id collate "C" = shown.id limit 1) t
  )
  select c.key, c.order_id, c.transaction_id, c.state, c.amount, c.currency, c.opened_at, c.resolved_at
  from mirror.chargebacks c
  where p_as_of is null or not exists (select from touched c2 where c2.key = c.key)
  union all
  select k.key, k.order_id, sale.id, known.state, coalesce(sale.amount, o.total), coalesce(sale.currency, o.currency),
         least(ordered.first_at, sale.first_at), case when known.state <> 'opened' then known.ended_at end
  from showing k
  left join lateral (
    select x.status, x.total, x.currency from reports.orders(p_as_of) x where x.id collate "C" = k.order_id limit 1
  ) o on true
  left join lateral (
    select shown.*, (
        select min(v.source_updated_at) from mirror.versions v
        where v.resource = 'order' and v.id = k.order_id and v.source_updated_at > shown.last_at
          and v.recorded_at <= p_as_of and v.data->>'status' not like 'chargeback%') as left_at
    from (
      select min(v.source_updated_at) as first_at, max(v.source_updated_at) as last_at,
             min(v.source_updated_at) filter (where v.data->>'status' = 'chargeback_accepted') as accepted_at,
             min(v.source_updated_at) filter (where v.data->>'status' = 'chargeback_dismissed') as dismissed_at,
             (array_agg(v.data->>'status' order by v.source_updated_at desc,
                        v.data->>'status' collate "C" desc))[1] as last_status
      from mirror.versions v
      where v.resource = 'order' and v.id = k.order_id and v.recorded_at <= p_as_of
        and v.data->>'status' like 'chargeback%'
    ) shown
  ) ordered on true
  left join lateral (
    select t.id, t.amount, t.currency, t.status, shown.*, (
        select min(v.source_updated_at) from mirror.versions v
        where v.resource in ('transaction', 'transaction.inline') and v.id = t.id
          and v.source_updated_at > shown.last_at and v.recorded_at <= p_as_of
          and v.data->>'status' not like 'chargeback%') as left_at
    from mirror.transactions m
    cross join lateral (
      select x.* from reports.transactions(p_as_of) x where x.id collate "C" = m.id limit 1) t
    cross join lateral (
      select min(v.source_updated_at) as first_at, max(v.source_updated_at) as last_at
      from mirror.versions v
      where v.resource in ('transaction', 'transaction.inline') and v.id = t.id and v.recorded_at <= p_as_of
        and v.data->>'status' like 'chargeback%'
    ) shown
    where (m.order_id = k.order_id or m.id = k.key) and coalesce(t.order_id, t.id) = k.key
      and (shown.first_at is not null or (t.type = 'sale' and t.status not in ('failed', 'voided')))
    order by shown.first_at is null, t.created_at, t.id collate "C"
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
        when ordered.first_at is not null then coalesce(ordered.dismissed_at, ordered.left_at, ordered.last_at)
        else coalesce(sale.left_at, sale.last_at) end as ended_at
  ) known
$$;
