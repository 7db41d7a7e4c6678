-- A transaction appears by itself (`transaction`) and within its order (`transaction.inline`). Its own snapshot decides
-- every field that it has, except the status: there, the later of the two snapshots counts.
create or replace function reports.transactions(p_as_of timestamptz default null)
returns table (id text, type text, status text, amount bigint, currency text, customer_id text, order_id text,
               failure_code text, created_at timestamptz, updated_at timestamptz)
language sql stable parallel safe as $$
  select t.id, t.type, t.status, t.amount, reports.one_spelling(t.currency), t.customer_id, t.order_id, t.failure_code, t.created_at,
         t.updated_at
  from mirror.transactions t
  where t.deleted_at is null and (p_as_of is null or not exists (
    select from mirror.versions c
    where c.resource in ('transaction', 'transaction.inline') and c.id = t.id and c.recorded_at > p_as_of))
  union all
  select k.id, reports.code_of(s.shown->'type'),
         left(case when k.own is null or (k.inline_seen, k.inline_at) > (k.own_seen, k.own_at)
                   then k.inline->>'status' else k.own->>'status' end, 40),
         reports.whole(s.shown->'amount'), reports.currency_of(s.shown->'currency'),
         reports.id_of(s.shown->'customer_id'), coalesce(k.own->>'order_id', k.inline->>'order_id'),
         coalesce(k.own->>'failure_code', k.inline->>'failure_code'),
         reports.moment(s.shown->'created_at'), coalesce(k.own_at, k.inline_at)
  from (
    select s.id,
           (array_agg(s.data) filter (where s.resource = 'transaction'))[1] as own,
           (array_agg(s.data) filter (where s.resource = 'transaction.inline'))[1] as inline,
           max(s.source_updated_at) filter (where s.resource = 'transaction') as own_at,
           max(s.source_updated_at) filter (where s.resource = 'transaction.inline') as inline_at,
           max(greatest(s.source_updated_at, s.observed_at)) filter (where s.resource = 'transaction') as own_seen,
           max(greatest(s.source_updated_at, s.observed_at)) filter (where s.resource = 'transaction.inline')
             as inline_seen
    from (
      select distinct on (v.resource, v.id) v.resource, v.id, v.data, v.source_updated_at, v.observed_at
      from mirror.versions v
      where p_as_of is not null and v.resource in ('transaction', 'transaction.inline')
        and v.recorded_at <= p_as_of and v.id in (
          select c.id from mirror.versions c
          where c.resource in ('transaction', 'transaction.inline') and c.recorded_at > p_as_of)
      order by v.resource, v.id, v.source_updated_at desc, v.observed_at desc nulls last,
               reports.status_rank(v.data->>'status') desc, v.content_hash desc
    ) s group by s.id
  ) k
  cross join lateral (select coalesce(k.own, k.inline) as shown) s
$$;
