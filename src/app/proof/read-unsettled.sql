create or replace function reports.read_unsettled(p_as_of timestamptz default null) returns table (id text)
language sql stable parallel safe as $$
  select t.id from mirror.transactions t
  where reports.is_unsettled(t.type, t.data->>'status') and t.deleted_at is null
    and (p_as_of is null or not exists (
      select from mirror.versions c
      where c.resource = 'transaction' and c.id = t.id and c.recorded_at > p_as_of))
  union all
  select k.id from (
    select distinct on (v.id) v.id, v.data->>'type' as type, v.data->>'status' as status
    from mirror.versions v
    where p_as_of is not null and v.resource = 'transaction' and v.recorded_at <= p_as_of
      and v.id in (select c.id from mirror.versions c where c.resource = 'transaction' and c.recorded_at > p_as_of)
    order by v.id, v.source_updated_at desc, v.observed_at desc nulls last,
             reports.status_rank(v.data->>'status') desc, v.content_hash desc
  ) k where reports.is_unsettled(k.type, k.status)
$$;
comment on function reports.read_unsettled is
  'Sales whose own last snapshot is unsettled, even if a later snapshot of their order shows them as settled.';
