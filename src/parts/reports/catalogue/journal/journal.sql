create or replace function reports.default_accounts() returns jsonb
language sql immutable parallel safe as $$
  select '{"clearing": "1200", "sales": "4000", "refunds": "4100", "chargebacks": "6800"}'::jsonb
$$;

-- One balanced entry for each currency and day: every movement is booked on two sides. An entry is final, with a number
-- that every repeat gives again, if its lines are those that a close in the same time zone froze under that number. A
-- close also passes p_final_until while it reads the rows to freeze: movements booked before that time and in no close
-- are final then. Movements recorded after their month was closed have a line for each day on which they happened.
create or replace function reports.journal(p_from timestamptz, p_to timestamptz, p_zone text,
                                           p_as_of timestamptz default null,
                                           p_accounts jsonb default reports.default_accounts(),
                                           p_final_until timestamptz default null)
returns table (number text, status text, date date, account text, description text, debit bigint, credit bigint,
               currency text, line bigint)
language sql stable parallel safe as $$
  with closed as (
    select c.id, c.from_at, c.to_at, c.time_zone from reports.closes c
    where c.closed_at <= coalesce(p_as_of, 'infinity')
  ), frozen_line as (
    -- Matched by column name: a close of an earlier version may have other columns.
    select cell.value->>'number' as number, array[cell.value->>'account', cell.value->>'description',
             cell.value->>'debit', cell.value->>'credit'] as line, (cell.value->>'line')::bigint as place
    from closed c
    join reports.closed_reports r on r.close = c.id and r.report = 'journal'
    join reports.closed_rows w on w.close = c.id and w.report = 'journal'
    cross join lateral (
      select jsonb_object_agg(k.name, w.cells[k.n]) as value
      from (select x.value->>'name' as name, x.n
            from jsonb_array_elements(r.columns) with ordinality as x(value, n)) k
    ) cell
    where c.from_at < p_to and c.to_at > p_from and c.time_zone = p_zone
  ), frozen as (
    select f.number, array_agg(f.line order by f.place) as lines from frozen_line f group by f.number
  ), posted as (
    select (b.booked_at at time zone p_zone)::date as day, b.currency, b.kind,
           coalesce(b.booked_at < p_final_until, false)
             and b.booked_at >= coalesce((select max(c.to_at) from closed c), '-infinity') as is_closing,
           case when b.is_late then (b.at at time zone p_zone)::date end as happened_on, b.amount < 0 as is_out,
           count(*) as n, abs(sum(b.amount))::bigint as amount
    from reports.booked_movements(p_as_of) b
    where b.booked_at >= p_from and b.booked_at < p_to and b.amount <> 0
    group by 1, 2, 3, 4, 5, 6
  ), sided as (
    select p.*, k.place, k.label, side.is_debit,
           case when side.is_clearing then p_accounts->>'clearing' else p_accounts->>k.account end as account
    from posted p
    join (values ('sale', 1, 'sales', 'sales'), ('refund', 2, 'refunds', 'refunds'),
                 ('chargeback', 3, 'chargebacks', 'chargebacks'),
                 ('reversal', 4, 'chargebacks dismissed', 'chargebacks')) as k(kind, place, label, account) using (kind)
    cross join lateral (values (true, not p.is_out), (false, p.is_out)) as side(is_clearing, is_debit)
  ), entered as (
    select to_char(s.day, 'YYYYMMDD') || '-' || upper(s.currency collate "C") as name, s.day, s.currency, s.is_closing, s.account,
           s.n || ' ' || s.label || coalesce(' of ' || to_char(s.happened_on, 'YYYY-MM-DD')
             || ', learned after its month was closed', '') as description,
           case when s.is_debit then s.amount else 0 end as debit,
           case when s.is_debit then 0 else s.amount end as credit,
           row_number() over (partition by s.day, s.currency, s.is_closing
             order by s.happened_on nulls first, s.place, s.is_out, s.is_debit desc) as line
    from sided s
  ), final as (
    select e.name from entered e where not e.is_closing group by e.name
    having array_agg(array[e.account, e.description, e.debit::text, e.credit::text] order by e.line)
      = (select f.lines from frozen f where f.number = 'TH-' || e.name)
  )
  select case when known.is_final then 'TH-' else 'PRELIM-' end || e.name,
         case when known.is_final then 'final' else 'preliminary' end, e.day, e.account, e.description, e.debit,
         e.credit, e.currency, e.line
  from entered e
  cross join lateral (select e.is_closing or e.name in (select name from final) as is_final) known
$$;

create or replace function reports.journal_unknown(p_from timestamptz, p_to timestamptz, p_zone text,
                                                  p_as_of timestamptz default null)
returns table (what text, n bigint)
language sql stable parallel safe as $$
  select u.what, u.n from reports.unknown_movements(p_from, p_to, p_as_of) u
$$;
