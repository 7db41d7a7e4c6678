import type { Knex } from "knex";

/**
 * Movements: every sale, refund, chargeback and reversal, once, signed, with its own time. A captured sale is one with
 * status succeeded or chargeback. All sums of money in the reports are sums of these.
 */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    -- Every report sums transactions: with this their wide rows, a gigabyte a million, are left alone.
    create index transactions_reported on mirror.transactions (created_at)
      include (type, status, amount, currency, order_id, id, updated_at) where deleted_at is null;

    -- Orders (transactions, where there is no order) of which a state was recorded since.
    create function reports.touched(p_as_of timestamptz) returns table (key text)
    language sql stable parallel safe as $$
      select v.id from mirror.versions v where v.resource = 'order' and v.recorded_at > p_as_of
      union
      select coalesce(t.order_id, t.id)
      from mirror.versions v join mirror.transactions t on t.id = v.id
      where v.resource in ('transaction', 'transaction.inline') and v.recorded_at > p_as_of
    $$;

    -- As of a time: mirror.chargebacks (0002) over the states recorded by then, for what was touched since.
    create function reports.chargebacks(p_as_of timestamptz default null)
    returns table (key text, order_id text, transaction_id text, state text, amount bigint, currency text,
                   opened_at timestamptz, resolved_at timestamptz)
    language sql stable parallel safe as $$
      select c.key, c.order_id, c.transaction_id, c.state, c.amount, c.currency, c.opened_at, c.resolved_at
      from mirror.chargebacks c
      where p_as_of is null or not exists (select from reports.touched(p_as_of) c2 where c2.key = c.key)
      union all
      select k.key, k.order_id, sale.id, known.state, coalesce(sale.amount, o.total), coalesce(sale.currency, o.currency),
             least(ordered.first_at, sale.first_at), case when known.state <> 'opened' then known.ended_at end
      from (
        select v.id as key, v.id as order_id from mirror.versions v
        where p_as_of is not null and v.recorded_at <= p_as_of and v.resource = 'order'
          and v.data->>'status' like 'chargeback%' and v.id in (select key from reports.touched(p_as_of))
        union
        select coalesce(t.order_id, t.id), t.order_id
        from mirror.versions v join reports.transactions(p_as_of) t on t.id = v.id
        where p_as_of is not null and v.recorded_at <= p_as_of and v.resource in ('transaction', 'transaction.inline')
          and v.data->>'status' like 'chargeback%'
          and coalesce(t.order_id, t.id) in (select key from reports.touched(p_as_of))
      ) k
      left join reports.orders(p_as_of) o on o.id = k.order_id
      left join lateral (
        select shown.*, (
            select min(v.source_updated_at) from mirror.versions v
            where v.resource = 'order' and v.id = k.order_id and v.source_updated_at > shown.last_at
              and v.recorded_at <= p_as_of and v.data->>'status' not like 'chargeback%') as left_at
        from (
          select min(v.source_updated_at) as first_at, max(v.source_updated_at) as last_at,
                 min(v.source_updated_at) filter (where v.data->>'status' = 'chargeback_accepted') as accepted_at,
                 min(v.source_updated_at) filter (where v.data->>'status' = 'chargeback_dismissed') as dismissed_at,
                 (array_agg(v.data->>'status' order by v.source_updated_at desc, v.content_hash))[1] as last_status
          from mirror.versions v
          where v.resource = 'order' and v.id = k.order_id and v.recorded_at <= p_as_of
            and v.data->>'status' like 'chargeback%'
        ) shown
      ) ordered on true
      left join (
        select distinct on (coalesce(t.order_id, t.id)) t.id, t.order_id, t.amount, t.currency, t.status,
               shown.first_at, shown.last_at, (
                 select min(v.source_updated_at) from mirror.versions v
                 where v.resource in ('transaction', 'transaction.inline') and v.id = t.id
                   and v.source_updated_at > shown.last_at and v.recorded_at <= p_as_of
                   and v.data->>'status' not like 'chargeback%') as left_at
        from reports.transactions(p_as_of) t
        left join (
          select v.id, min(v.source_updated_at) as first_at, max(v.source_updated_at) as last_at
          from mirror.versions v
          where v.resource in ('transaction', 'transaction.inline') and v.recorded_at <= p_as_of
            and v.data->>'status' like 'chargeback%'
          group by v.id
        ) shown on shown.id = t.id
        where p_as_of is not null and coalesce(t.order_id, t.id) in (select key from reports.touched(p_as_of))
          and (shown.first_at is not null or (t.type = 'sale' and t.status not in ('failed', 'voided')))
        order by coalesce(t.order_id, t.id), shown.first_at is null, t.created_at, t.id collate "C"
      ) sale on coalesce(sale.order_id, sale.id) = k.key
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

    -- The sign of a refund is not shown by the interface: amounts are taken absolute and signed here.
    create function reports.movements(p_as_of timestamptz default null)
    returns table (movement text, kind text, object_id text, order_id text, at timestamptz, currency text,
                   amount bigint)
    language sql stable parallel safe as $$
      select t.type || ':' || t.id, t.type, t.id, t.order_id, t.created_at, t.currency,
             case t.type when 'sale' then abs(t.amount) else -abs(t.amount) end
      from reports.transactions(p_as_of) t
      where (t.type = 'sale' and t.status in ('succeeded', 'chargeback')) or (t.type = 'refund' and t.status = 'succeeded')
      union all
      select m.kind || ':' || c.key, m.kind, c.key, c.order_id, m.at, c.currency, m.amount
      from reports.chargebacks(p_as_of) c
      cross join lateral (
        values ('chargeback', c.opened_at, -c.amount), ('reversal', c.resolved_at, c.amount)
      ) as m(kind, at, amount)
      where m.kind = 'chargeback' or c.state = 'dismissed'
    $$;

    create table reports.closes (
      id bigint primary key,
      month date not null unique check (extract(day from month) = 1),
      time_zone text not null,
      from_at timestamptz not null,
      to_at timestamptz not null,
      as_of timestamptz not null,
      closed_at timestamptz not null default clock_timestamp(),
      verdict text not null check (verdict in ('PASS', 'FAIL', 'INCOMPLETE')),
      -- Why it was closed without a PASS.
      reason text,
      sha256 text not null,
      check (verdict = 'PASS' or reason is not null)
    );
    create table reports.closed_reports (
      close bigint not null references reports.closes (id) deferrable initially deferred,
      report text collate "C" not null,
      columns jsonb not null,
      about jsonb not null,
      row_count bigint not null,
      sha256 text not null,
      primary key (close, report)
    );
    create table reports.closed_rows (
      close bigint not null,
      report text collate "C" not null,
      n bigint not null,
      cells text[] not null,
      primary key (close, report, n),
      foreign key (close, report) references reports.closed_reports (close, report) deferrable initially deferred
    );
    create table reports.closed_movements (
      close bigint not null references reports.closes (id) deferrable initially deferred,
      movement text collate "C" not null,
      kind text not null,
      object_id text collate "C" not null,
      order_id text collate "C",
      at timestamptz not null,
      booked_at timestamptz not null,
      is_late boolean not null,
      currency text not null,
      amount bigint not null
    );
    create index closed_movements_close on reports.closed_movements (close);
    comment on table reports.closed_movements is
      'What was booked in a closed month: with what was learned of months that were closed before, by its own date.';

    create function reports.refuse_change() returns trigger language plpgsql as $$
    begin
      raise exception 'reports.% is append-only (% refused): a closed month never changes', tg_table_name, lower(tg_op)
        using errcode = 'restrict_violation';
    end $$;
    create trigger closes_append_only before update or delete or truncate on reports.closes
      for each statement execute function reports.refuse_change();
    create trigger closed_reports_append_only before update or delete or truncate on reports.closed_reports
      for each statement execute function reports.refuse_change();
    create trigger closed_rows_append_only before update or delete or truncate on reports.closed_rows
      for each statement execute function reports.refuse_change();
    create trigger closed_movements_append_only before update or delete or truncate on reports.closed_movements
      for each statement execute function reports.refuse_change();

    -- Closed months as they were frozen. What differs from them now is booked at the start of the first open month,
    -- as the difference, with its own date. Without a close, a movement is booked when it happened.
    create function reports.booked_movements(p_as_of timestamptz default null)
    returns table (movement text, kind text, object_id text, order_id text, at timestamptz, booked_at timestamptz,
                   is_late boolean, currency text, amount bigint)
    language sql stable parallel safe as $$
      select m.movement, m.kind, m.object_id, m.order_id, m.at, m.at, false, m.currency, m.amount
      from reports.movements(p_as_of) m
      where not exists (select from reports.closes c where c.closed_at <= coalesce(p_as_of, 'infinity'))
      union all
      select f.movement, f.kind, f.object_id, f.order_id, f.at, f.booked_at, f.is_late, f.currency, f.amount
      from reports.closed_movements f join reports.closes c on c.id = f.close
      where c.closed_at <= coalesce(p_as_of, 'infinity')
      union all
      select coalesce(m.movement, f.movement), coalesce(m.kind, f.kind), coalesce(m.object_id, f.object_id),
             coalesce(m.order_id, f.order_id), coalesce(m.at, f.at),
             case when f.movement is null and m.at >= last.to_at then m.at else last.to_at end,
             f.movement is not null or m.at < last.to_at, coalesce(m.currency, f.currency),
             coalesce(m.amount, 0) - coalesce(f.amount, 0)
      from (select max(c.to_at) as to_at from reports.closes c where c.closed_at <= coalesce(p_as_of, 'infinity')
            having max(c.to_at) is not null) last
      cross join (
        reports.movements(p_as_of) m
        full join (
          select b.movement, b.kind, b.object_id, b.order_id, b.currency, min(b.at) as at, sum(b.amount)::bigint as amount
          from reports.closed_movements b join reports.closes c on c.id = b.close
          where c.closed_at <= coalesce(p_as_of, 'infinity')
          group by b.movement, b.kind, b.object_id, b.order_id, b.currency
        ) f on f.movement = m.movement and f.currency = m.currency)
      where coalesce(m.amount, 0) <> coalesce(f.amount, 0)
    $$;
  `);
}

export async function down(db: Knex): Promise<void> {
  await db.raw(`
    drop index mirror.transactions_reported;
    drop function reports.booked_movements;
    drop table reports.closed_movements, reports.closed_rows, reports.closed_reports, reports.closes;
    drop function reports.refuse_change, reports.movements, reports.chargebacks, reports.touched`);
}
