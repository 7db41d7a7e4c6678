-- Past-due amounts as of p_as_of (not at the end of the period), by age at the end of the period in days of the zone.
create or replace function reports.past_due_aging(p_from timestamptz, p_to timestamptz, p_zone text,
                                                  p_as_of timestamptz default null)
returns table (currency text, days_past_due text, orders bigint, amount bigint, next_retry_at timestamptz)
language sql stable parallel safe as $$
  with past_due as materialized (
    select s.id from reports.subscription_states(p_as_of) s where s.is_last and s.status = 'past_due'
  ), failed as materialized (
    select c.order_id as id, c.currency, c.total, ((p_to - interval '1 microsecond') at time zone p_zone)::date
             - (c.began_at at time zone p_zone)::date as days
    from reports.renewal_cycles(array(select p.id from past_due p), p_as_of) c
    where c.status = 'failed' and c.began_at < p_to
  ), retries as materialized (
    select r.id, r.next_retry_at from reports.order_retries(p_as_of) r
  )
  select f.currency, case when f.days <= 7 then '0-7' when f.days <= 14 then '8-14' when f.days <= 30 then '15-30'
                          when f.days <= 60 then '31-60' else '61+' end,
         count(*), sum(f.total)::bigint, min(r.next_retry_at)
  from failed f left join retries r on r.id = f.id
  group by 1, 2
$$;

create or replace function reports.past_due_aging_unknown(p_from timestamptz, p_to timestamptz, p_zone text,
                                                         p_as_of timestamptz default null)
returns table (what text, n bigint)
language sql stable parallel safe as $$
  select a.what, count(*)
  from reports.orders(p_as_of) o
  left join (select s.id, s.status from reports.subscription_states(p_as_of) s where s.is_last) s
    on s.id = o.subscription_id
  cross join lateral (
    values ('renewal.amount', o.total is null and s.status = 'past_due'),
           ('renewal.currency', o.currency is null and s.status = 'past_due'),
           ('renewal.created_at', o.created_at is null and s.status = 'past_due'),
           ('renewal.subscription', s.id is null)) as a(what, is_unknown)
  where o.status = 'failed' and o.subscription_cycle > 1 and (o.created_at < p_to) is not false and a.is_unknown
  group by a.what
$$;
