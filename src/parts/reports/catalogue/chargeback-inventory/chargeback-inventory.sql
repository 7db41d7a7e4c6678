-- Chargebacks from the opening to the closing inventory. An end after the period does not count: the chargeback is
-- still in the closing inventory.
create or replace function reports.chargeback_inventory(p_from timestamptz, p_to timestamptz, p_zone text,
                                             p_as_of timestamptz default null)
returns table (currency text, opening_count bigint, opening bigint, received_count bigint, received bigint,
               accepted_count bigint, accepted bigint, dismissed_count bigint, dismissed bigint,
               closing_count bigint, closing bigint)
language sql stable parallel safe as $$
  with side as (
    select c.*, c.opened_at < p_from as was_before,
           c.opened_at >= p_from and c.opened_at < p_to as is_received,
           c.resolved_at < p_from as had_ended, c.resolved_at >= p_from and c.resolved_at < p_to as is_ended
    from reports.chargebacks(p_as_of) c where c.opened_at < p_to
  )
  select s.currency, count(*) filter (where opening), coalesce(sum(s.amount) filter (where opening), 0)::bigint,
         count(*) filter (where s.is_received), coalesce(sum(s.amount) filter (where s.is_received), 0)::bigint,
         count(*) filter (where accepted), coalesce(sum(s.amount) filter (where accepted), 0)::bigint,
         count(*) filter (where dismissed), coalesce(sum(s.amount) filter (where dismissed), 0)::bigint,
         count(*) filter (where closing), coalesce(sum(s.amount) filter (where closing), 0)::bigint
  from side s
  cross join lateral (
    select s.was_before and s.had_ended is not true as opening,
           s.is_ended is true and s.state = 'accepted' as accepted,
           s.is_ended is true and s.state = 'dismissed' as dismissed,
           coalesce(s.resolved_at >= p_to, true) as closing
  ) f
  group by s.currency
$$;

create or replace function reports.chargeback_inventory_unknown(p_from timestamptz, p_to timestamptz, p_zone text,
                                                               p_as_of timestamptz default null)
returns table (what text, n bigint)
language sql stable parallel safe as $$
  select u.what, u.n from reports.unknown_movements('-infinity', p_to, p_as_of) u where u.what like 'chargeback.%'
$$;
