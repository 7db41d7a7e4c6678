-- These functions define the state of a chargeback, once for mirror.disputed_sales and reports.chargebacks. The two differ
-- in the source of their orders and transactions. One function for the whole, with the view as its case without a time,
-- took twice as long: the planner plans for both cases (docs/decisions.md).

-- The openings of an order's chargeback, by its states recorded by p_as_of (null: all of them) in the order in which the
-- service dates them, whatever the order of arrival. The first one begins where the order first shows a chargeback, a
-- further one where it shows an open one after an end, or after it had left the chargeback statuses. So more states can
-- split openings, and never join two. Each says when it was first and last shown, when it was accepted or dismissed, and
-- when the order left the chargeback statuses. No row: the order never showed one.
create or replace function mirror.openings_of_order(p_order text, p_as_of timestamptz)
returns table (opening bigint, openings bigint, first_at timestamptz, last_at timestamptz, accepted_at timestamptz,
               dismissed_at timestamptz, last_status text, cause text, left_at timestamptz)
language sql stable parallel safe as $$
  select b.opening, max(b.opening) over (), b.first_at, b.last_at, b.accepted_at, b.dismissed_at, b.last_status, b.cause,
         b.left_at
  from (
    select s.opening, min(s.at) filter (where s.is_shown) as first_at, max(s.at) filter (where s.is_shown) as last_at,
           min(s.at) filter (where s.status = 'chargeback_accepted') as accepted_at,
           min(s.at) filter (where s.status = 'chargeback_dismissed') as dismissed_at,
           (array_agg(s.status order by s.place desc) filter (where s.is_shown))[1] as last_status,
           (array_agg(s.cause order by s.place desc) filter (where s.is_shown))[1] as cause,
           min(s.at) filter (where s.place > s.last_place) as left_at
    from (
      select m.*, max(m.place) filter (where m.is_shown) over (partition by m.opening) as last_place
      from (
        select n.*, count(*) filter (where n.is_shown and (n.shown = 1 or (n.is_open and n.is_open_before is not true)))
                    over (order by n.place) as opening
        from (
          select v.*, count(*) filter (where v.is_shown) over (order by v.place) as shown,
                 lag(v.is_open) over (order by v.place) as is_open_before
          from (
            select x.source_updated_at as at, x.data->>'status' as status, x.cause,
                   coalesce(x.data->>'status' like 'chargeback%', false) as is_shown,
                   coalesce(x.data->>'status' like 'chargeback%' and x.data->>'status' not in
                            ('chargeback_accepted', 'chargeback_dismissed'), false) as is_open,
                   row_number() over (order by x.source_updated_at, reports.status_rank(x.data->>'status'),
                                               x.data->>'status' collate "C", x.content_hash) as place
            from mirror.versions x
            where x.resource = 'order' and x.id = p_order and (p_as_of is null or x.recorded_at <= p_as_of)
          ) v
        ) n
      ) m
    ) s where s.opening > 0 group by s.opening
  ) b
$$;

-- The states of a sale in their order: the transaction's own, and those that its order shows of it.
create or replace function mirror.states_of_sale(p_sale text, p_as_of timestamptz)
returns table (id text, at timestamptz, cause text, is_shown boolean, place bigint)
language sql stable parallel safe as $$
  select v.id, v.source_updated_at, v.cause, coalesce(v.data->>'status' like 'chargeback%', false),
         row_number() over (order by v.source_updated_at, reports.status_rank(v.data->>'status'), v.content_hash desc)
  from mirror.versions v
  where v.resource in ('transaction', 'transaction.inline') and v.id = p_sale
    and (p_as_of is null or v.recorded_at <= p_as_of)
$$;

-- The same by the sales of a case whose order never showed a chargeback: one begins where the first of them comes to show
-- one. A sale shows no outcome.
create or replace function mirror.openings_of_sales(p_order text, p_case text, p_as_of timestamptz)
returns table (opening bigint, openings bigint, began_at timestamptz)
language sql stable parallel safe as $$
  select row_number() over (order by b.at, b.place), count(*) over (), b.at
  from (
    select s.at, s.step, s.place, sum(s.step) over (order by s.at, s.step desc, s.id, s.place) as showing
    from (
      select n.*, n.is_shown::integer - coalesce(lag(n.is_shown::integer) over (partition by n.id order by n.place), 0) as step
      from mirror.transactions t cross join lateral mirror.states_of_sale(t.id, p_as_of) n
      where t.order_id = p_order or t.id = case when p_order is null then p_case end
    ) s where s.step <> 0
  ) b where b.step = 1 and b.showing = 1
$$;

-- The openings of a case: its order's; where that never showed a chargeback, its sales'. The columns of the order are
-- null then. A sale's states after `after` and until `until` belong to this opening: an order and its sale change
-- together, but not in the same instant.
create or replace function mirror.openings_of_case(p_order text, p_case text, p_as_of timestamptz)
returns table (opening bigint, openings bigint, began_at timestamptz, after timestamptz, until timestamptz,
               first_at timestamptz, last_at timestamptz, accepted_at timestamptz, dismissed_at timestamptz,
               last_status text, cause text, left_at timestamptz)
language sql stable parallel safe as $$
  select e.opening, e.openings, e.began_at, e.after, lead(e.after) over (order by e.opening), e.first_at, e.last_at,
         e.accepted_at, e.dismissed_at, e.last_status, e.cause, e.left_at
  from (
    select c.*, case when c.opening > 1 then greatest(c.began_at - reports.same_moment(),
                                                      lag(c.shown_until) over (order by c.opening)) end as after
    from (
      select o.*, o.first_at as began_at, o.last_at as shown_until from mirror.openings_of_order(p_order, p_as_of) o
      union all
      select s.opening, s.openings, null, null, null, null, null, null, null, s.began_at, s.began_at
      from mirror.openings_of_sales(p_order, p_case, p_as_of) s
      where not exists (
        select from mirror.versions v
        where v.resource = 'order' and v.id = p_order and v.data->>'status' like 'chargeback%'
          and (p_as_of is null or v.recorded_at <= p_as_of))
    ) c
  ) e
$$;

-- A sale's part in an opening of its case. One row; `ever`: the sale showed a chargeback at any time.
create or replace function mirror.sale_in_opening(p_sale text, p_as_of timestamptz, p_after timestamptz,
                                                  p_until timestamptz)
returns table (first_at timestamptz, last_at timestamptz, left_at timestamptz, cause text, ever boolean)
language sql stable parallel safe as $$
  select min(r.first_at) filter (where r.is_in), max(r.last_at) filter (where r.is_in),
         (array_agg(r.left_at order by r.first_at desc) filter (where r.is_in))[1],
         (array_agg(r.cause order by r.first_at desc) filter (where r.is_in))[1], count(*) > 0
  from (
    select b.*, (b.first_at > p_after) is not false and (b.first_at <= p_until) is not false as is_in
    from (
      select min(s.at) filter (where s.is_shown) as first_at, max(s.at) filter (where s.is_shown) as last_at,
             (array_agg(s.cause order by s.place desc) filter (where s.is_shown))[1] as cause,
             min(s.at) filter (where not s.is_shown) as left_at
      from (
        select n.*, count(*) filter (where n.is_shown and n.is_shown_before is not true) over (order by n.place) as nth
        from (
          select v.*, lag(v.is_shown) over (order by v.place) as is_shown_before
          from mirror.states_of_sale(p_sale, p_as_of) v
        ) n
      ) s where s.nth > 0 group by s.nth
    ) b
  ) r
$$;

-- The order's present status counts before its past ones, and the order before its sale. If the status goes back to a
-- normal one without "accepted" or "dismissed" in between, the chargeback counts as dismissed.
create or replace function mirror.chargeback_state(p_order_status text, p_first_at timestamptz, p_last_status text,
                                                   p_sale_status text)
returns text language sql immutable parallel safe as $$
  select case
      when p_order_status = 'chargeback_accepted' then 'accepted'
      when p_order_status = 'chargeback_dismissed' then 'dismissed'
      when p_order_status like 'chargeback%' then 'opened'
      when p_last_status = 'chargeback_accepted' then 'accepted'
      when p_first_at is not null then 'dismissed'
      when p_sale_status like 'chargeback%' then 'opened'
      else 'dismissed' end
$$;

-- When the chargeback reached that state; null while it is open.
create or replace function mirror.chargeback_ended_at(
  p_state text, p_first_at timestamptz, p_last_at timestamptz, p_accepted_at timestamptz, p_dismissed_at timestamptz,
  p_left_at timestamptz, p_sale_last_at timestamptz, p_sale_left_at timestamptz)
returns timestamptz language sql immutable parallel safe as $$
  select case
      when p_state = 'opened' then null
      when p_state = 'accepted' then p_accepted_at
      when p_first_at is not null then coalesce(p_dismissed_at, p_left_at, p_last_at)
      else coalesce(p_sale_left_at, p_sale_last_at) end
$$;

-- Of two sales of one order, the first that was disputed has the key of the order's case, which it had when it was the
-- only one; any other has its own id. A further opening has its number behind that, as alerts have.
create or replace function mirror.dispute_key(p_case text, p_transaction text, p_nth bigint, p_opening bigint)
returns text language sql immutable parallel safe as $$
  select case when p_nth > 1 then p_transaction else p_case end
         || case when p_opening > 1 then '#' || p_opening else '' end
$$;

-- One row for each disputed sale and opening: movements are those of sales. Where sales of the order show the
-- chargeback that was opened, those are disputed; else those that ever showed one; where the order alone does, all of
-- its sales that stand. The case (`key`) is the order's, and so is its outcome. Keys are plain columns, so that a query
-- for some of them uses indexes.
create or replace view mirror.disputed_sales as
select k.key, mirror.dispute_key(k.key, sale.id, sale.nth, c.opening) as sale_key, k.order_id, sale.id as transaction_id,
       now.state, coalesce(sale.amount, case when sale.n > 1 then null else o.total end) as amount,
       coalesce(sale.currency, o.currency) as currency, began.at as opened_at, c.accepted_at,
       case when now.state = 'dismissed' then greatest(ended.at, began.at) else c.dismissed_at end as dismissed_at,
       case when ended.at is not null then greatest(ended.at, began.at) end as resolved_at,
       coalesce(c.cause, sale.cause) as last_cause, c.opening, c.openings
from (
  select v.id as key, v.id as order_id from mirror.versions v
  where v.resource = 'order' and v.data->>'status' like 'chargeback%'
  union
  select t.order_id, t.order_id
  from mirror.versions v join mirror.transactions t on t.id = v.id
  where v.resource in ('transaction', 'transaction.inline') and v.data->>'status' like 'chargeback%'
    and t.order_id is not null
  union
  select t.id, null
  from mirror.versions v join mirror.transactions t on t.id = v.id
  where v.resource in ('transaction', 'transaction.inline') and v.data->>'status' like 'chargeback%'
    and t.order_id is null
) k
left join mirror.orders o on o.id = k.order_id
cross join lateral mirror.openings_of_case(k.order_id, k.key, null) c
left join lateral (
  select s.*, count(*) over () as n
  from (
    select t.id, t.amount, t.currency, t.status, shown.first_at, shown.last_at, shown.left_at, shown.cause,
           row_number() over (order by shown.first_at, t.created_at, t.id) as nth,
           count(shown.first_at) over () as n_in, count(*) filter (where shown.ever) over () as n_ever, shown.ever
    from mirror.transactions t
    cross join lateral mirror.sale_in_opening(t.id, null, c.after, c.until) shown
    -- Null where there is an order: then no index is searched for it.
    where (t.order_id = k.order_id or t.id = case when k.order_id is null then k.key end)
      and (shown.ever or reports.is_sale_that_stands(t.type, t.status))
  ) s where s.first_at is not null or (s.n_in = 0 and (s.ever or s.n_ever = 0))
) sale on true
cross join lateral (
  select mirror.chargeback_state(case when c.opening = c.openings then o.status end, c.first_at, c.last_status,
                                 case when c.opening = c.openings then sale.status end) as state
) now
cross join lateral (
  select case when sale.nth > 1 then coalesce(sale.first_at, c.began_at)
              when c.opening > 1 then c.began_at else least(c.first_at, sale.first_at) end as at
) began
cross join lateral (
  select mirror.chargeback_ended_at(now.state, c.first_at, c.last_at, c.accepted_at, c.dismissed_at, c.left_at,
                                    sale.last_at, sale.left_at) as at
) ended;
comment on view mirror.disputed_sales is
  'key: that of mirror.chargebacks; opening: one of several times (openings); sale_key: unique, the same for the first disputed sale of an order, the transaction''s id for any other, with the number of a further opening behind it';

-- The openings of each case: a person answers one for each order, with all of its disputed sales. The amount is null
-- where one of theirs is not known, or they are in several currencies.
create or replace view mirror.chargeback_openings as
select s.key, s.order_id, min(s.transaction_id) filter (where s.is_first) as transaction_id,
       case when bool_or(s.state = 'opened') then 'opened' when bool_or(s.state = 'accepted') then 'accepted'
            else 'dismissed' end as state,
       case when count(s.amount) = count(*) and min(s.currency) is not distinct from max(s.currency)
            then sum(s.amount)::bigint end as amount,
       case when min(s.currency) = max(s.currency) then min(s.currency) end as currency,
       min(s.opened_at) as opened_at, min(s.accepted_at) as accepted_at, max(s.dismissed_at) as dismissed_at,
       case when not bool_or(s.state = 'opened') then max(s.resolved_at) end as resolved_at,
       min(s.last_cause) filter (where s.is_first) as last_cause, s.opening, s.openings
from (
  select d.*, d.sale_key = mirror.dispute_key(d.key, null, 1, d.opening) as is_first from mirror.disputed_sales d
) s
group by s.key, s.order_id, s.opening, s.openings;
comment on view mirror.chargeback_openings is
  'key: that of mirror.chargebacks; opening: from 1; openings: how many its case has';

-- The cases as they stand: each with its last opening.
create or replace view mirror.chargebacks as
select c.key, c.order_id, c.transaction_id, c.state, c.amount, c.currency, c.opened_at, c.accepted_at, c.dismissed_at,
       c.resolved_at, c.last_cause, c.opening
from mirror.chargeback_openings c where c.opening = c.openings;
comment on view mirror.chargebacks is
  'key: order_id; the transaction''s id where there is no order; opening: 2 and more where it was opened again';

-- Of a release that knew one opening; its views are replaced above.
drop function if exists mirror.chargeback_of_order(text, timestamptz);
drop function if exists mirror.chargeback_of_transaction(text, timestamptz);
drop function if exists mirror.dispute_key(text, text, bigint);
