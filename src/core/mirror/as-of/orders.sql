-- The orders as of a time. The mirror's rows give those that have not changed since; the others are read from the
-- highest version that was recorded by then. The ordering is that of src/core/mirror/version.ts.
create or replace function reports.orders(p_as_of timestamptz default null)
returns table (id text, order_number text, customer_id text, status text, total bigint, currency text,
               failure_code text, subscription_id text, subscription_cycle bigint, card_brand text,
               created_at timestamptz)
language sql stable parallel safe as $$
  select o.id, o.order_number, o.customer_id, o.status, o.total, reports.one_spelling(o.currency), o.failure_code, o.subscription_id,
         o.subscription_cycle::bigint, o.card_brand, o.created_at
  from mirror.orders o
  where o.version <> '' and o.deleted_at is null and (p_as_of is null or not exists (
    select from mirror.versions c where c.resource = 'order' and c.id = o.id and c.recorded_at > p_as_of))
  union all
  select k.id, reports.text_of(k.data->'order_number'), reports.id_of(k.data->'customer_id'),
         reports.code_of(k.data->'status'), reports.whole(k.data->'total'), reports.currency_of(k.data->'currency'),
         reports.text_of(k.data->'failure_code'), reports.id_of(k.data->'subscription_id'),
         reports.whole(k.data->'subscription_cycle'), reports.text_of(k.data->'payment_method'->'card_brand'),
         reports.moment(k.data->'created_at')
  from (
    select distinct on (v.id) v.id, v.data from mirror.versions v
    where p_as_of is not null and v.resource = 'order' and v.recorded_at <= p_as_of
      and v.id in (select c.id from mirror.versions c where c.resource = 'order' and c.recorded_at > p_as_of)
    order by v.id, v.source_updated_at desc, v.observed_at desc nulls last,
             reports.status_rank(v.data->>'status') desc, v.content_hash desc
  ) k
$$;
