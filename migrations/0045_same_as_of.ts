import type { Knex } from "knex";

const unsettled = "('pending', 'in_progress')";

/**
 * A report as of a time prints the same for ever: it rests on what was recorded by then alone, and reads what it reads of
 * the history as the mirror read it when it was new. One odd value is null, and stops nothing.
 */
export async function up(db: Knex): Promise<void> {
  await values(db);
  await states(db);
  await settlement(db);
  await deliveries(db);
}

/**
 * Values of JSON as src/mirror/columns.ts reads them: a test compares the two. In plpgsql, which the planner does not look
 * into: every report names them a dozen times, and would be planned for longer than it runs.
 */
const values = (db: Knex) =>
  db.raw(String.raw`
    create or replace function reports.moment(p_value jsonb) returns timestamptz
    language plpgsql immutable parallel safe as $$
      declare
        given text := case when jsonb_typeof(p_value) = 'string' then p_value #>> '{}' end;
        m text[];
        day date;
        utc timestamp;
      begin
        m := regexp_match(given, '^([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([0-9]{2}):([0-9]{2}):([0-9]{2})([.][0-9]{1,9}|)'
                                 || '([Zz]|([+-])([0-9]{2})(:{0,1}[0-9]{2}|))$');
        if m is null or m[1] = '0000' or m[2] not between '01' and '12' or m[3] not between '01' and '31'
          or m[4] > '23' or m[5] > '59' or m[6] > '59' or m[10] > '23' or ltrim(m[11], ':') > '59' then
          return null;
        end if;
        day := make_date(m[1]::integer, m[2]::integer, 1) + (m[3]::integer - 1);
        if extract(day from day) <> m[3]::integer then return null; end if;
        -- What is finer than a microsecond is cut off.
        utc := day + (m[4] || ':' || m[5] || ':' || m[6] || '.' || rpad(substr(m[7], 2, 6), 6, '0'))::time;
        if m[9] is not null then
          utc := utc - (m[9] || m[10] || ' hours')::interval
                     - (m[9] || coalesce(nullif(ltrim(m[11], ':'), ''), '0') || ' minutes')::interval;
          if utc < '0001-01-01' or utc >= '10000-01-01' then return null; end if;
        end if;
        return utc at time zone 'UTC';
      end
    $$;
    comment on function reports.moment is
      'A time of the service, as canonicalTimestamp of src/service/timestamp.ts reads it; null for anything else.';

    create function reports.text_of(p_value jsonb) returns text
    language plpgsql immutable parallel safe as $$
      begin
        return case when jsonb_typeof(p_value) = 'string' then p_value #>> '{}' end;
      end
    $$;
    comment on function reports.text_of is 'Null for what is no text.';

    create function reports.code_of(p_value jsonb) returns text
    language plpgsql immutable parallel safe as $$
      begin
        return case when jsonb_typeof(p_value) = 'string' then left(p_value #>> '{}', 40) end;
      end
    $$;
    comment on function reports.code_of is
      'A status, a type or a currency, no longer than in the columns of the mirror; null for what is no text.';

    create function reports.id_of(p_value jsonb) returns text
    language plpgsql immutable parallel safe as $$
      begin
        return case when jsonb_typeof(p_value) = 'string'
                      and p_value #>> '{}' ~ '^[^\u0001-\u001f\u007f-\u009f]{1,255}$' then p_value #>> '{}' end;
      end
    $$;
    comment on function reports.id_of is 'Null for what is no id.';

    -- JavaScript's safe integers, as the mirror keeps them; of larger ones no sum could be made.
    create or replace function reports.whole(p_value jsonb) returns bigint
    language sql immutable parallel safe as $$
      select case when jsonb_typeof(p_value) = 'number' and p_value::text ~ '^(-|)[0-9]{1,16}$'
                    and p_value between '-9007199254740991' and '9007199254740991' then p_value::text::bigint end
    $$;
  `);

/** The mirror's rows as of a time. */
const states = (db: Knex) =>
  db.raw(`
    create or replace function reports.orders(p_as_of timestamptz default null)
    returns table (id text, order_number text, customer_id text, status text, total bigint, currency text,
                   failure_code text, subscription_id text, subscription_cycle bigint, card_brand text,
                   created_at timestamptz)
    language sql stable parallel safe as $$
      select o.id, o.order_number, o.customer_id, o.status, o.total, o.currency, o.failure_code, o.subscription_id,
             o.subscription_cycle::bigint, o.card_brand, o.created_at
      from mirror.orders o
      where o.version <> '' and o.deleted_at is null and (p_as_of is null or not exists (
        select from mirror.versions c where c.resource = 'order' and c.id = o.id and c.recorded_at > p_as_of))
      union all
      select k.id, reports.text_of(k.data->'order_number'), reports.id_of(k.data->'customer_id'),
             reports.code_of(k.data->'status'), reports.whole(k.data->'total'), reports.code_of(k.data->'currency'),
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

    create or replace function reports.transactions(p_as_of timestamptz default null)
    returns table (id text, type text, status text, amount bigint, currency text, customer_id text, order_id text,
                   failure_code text, created_at timestamptz, updated_at timestamptz)
    language sql stable parallel safe as $$
      select t.id, t.type, t.status, t.amount, t.currency, t.customer_id, t.order_id, t.failure_code, t.created_at,
             t.updated_at
      from mirror.transactions t
      where t.deleted_at is null and (p_as_of is null or not exists (
        select from mirror.versions c
        where c.resource in ('transaction', 'transaction.inline') and c.id = t.id and c.recorded_at > p_as_of))
      union all
      select k.id, reports.code_of(s.shown->'type'),
             left(case when k.own is null or (k.inline_seen, k.inline_at) > (k.own_seen, k.own_at)
                       then k.inline->>'status' else k.own->>'status' end, 40),
             reports.whole(s.shown->'amount'), reports.code_of(s.shown->'currency'),
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

    create or replace function reports.order_retries(p_as_of timestamptz default null)
    returns table (id text, next_retry_at timestamptz)
    language sql stable parallel safe as $$
      select o.id, o.next_retry_at from mirror.orders o
      where o.next_retry_at is not null and (p_as_of is null or not exists (
        select from mirror.versions c where c.resource = 'order.dunning' and c.id = o.id and c.recorded_at > p_as_of))
      union all
      select k.id, reports.moment(k.data->'next_retry_at')
      from (
        select distinct on (v.id) v.id, v.data from mirror.versions v
        where p_as_of is not null and v.resource = 'order.dunning' and v.recorded_at <= p_as_of
          and v.id in (
            select c.id from mirror.versions c where c.resource = 'order.dunning' and c.recorded_at > p_as_of)
        order by v.id, v.source_updated_at desc, reports.whole(v.data->'attempt_count') desc nulls last,
                 v.content_hash desc
      ) k
    $$;
  `);

/** Which sales were read as themselves unsettled last, as of the time; and of two states of one time the later one in life is last. */
const settlement = (db: Knex) =>
  db.raw(`
    create function reports.read_unsettled(p_as_of timestamptz default null) returns table (id text)
    language sql stable parallel safe as $$
      select t.id from mirror.transactions t
      where t.type = 'sale' and t.deleted_at is null and t.data->>'status' in ${unsettled}
        and (p_as_of is null or not exists (
          select from mirror.versions c
          where c.resource = 'transaction' and c.id = t.id and c.recorded_at > p_as_of))
      union all
      select k.id from (
        select distinct on (v.id) v.id, v.data->>'status' as status from mirror.versions v
        where p_as_of is not null and v.resource = 'transaction' and v.recorded_at <= p_as_of
          and v.id in (select c.id from mirror.versions c where c.resource = 'transaction' and c.recorded_at > p_as_of)
        order by v.id, v.source_updated_at desc, v.observed_at desc nulls last,
                 reports.status_rank(v.data->>'status') desc, v.content_hash desc
      ) k where k.status in ${unsettled}
    $$;
    comment on function reports.read_unsettled is
      'Transactions that were last read unsettled as themselves, also those that an event about their order showed settled since.';

    create or replace function reports.settlement_spans(p_times timestamptz[], p_as_of timestamptz default null)
    returns table (id text, order_id text, status text, currency text, amount bigint, paid_at timestamptz,
                   ended_at timestamptz)
    language sql stable parallel safe as $$
      with candidate as (
        select t.id, t.order_id, t.status, coalesce(t.currency, 'xxx') as currency,
               coalesce(abs(t.amount), 0) as amount, t.created_at
        from reports.transactions(p_as_of) t
        where t.type = 'sale' and t.created_at < p_times[cardinality(p_times)]
          and (t.status in ${unsettled}
               or width_bucket(t.created_at, p_times) < width_bucket(t.updated_at, p_times)
               or t.id in (select u.id from reports.read_unsettled(p_as_of) u))
      ), known as (
        select c.*, h.was_unsettled, h.settled_at, h.first_status
        from candidate c
        cross join lateral (
          select bool_or(v.data->>'status' in ${unsettled}) as was_unsettled,
                 min(v.source_updated_at) filter (where v.data->>'status' in ('succeeded', 'chargeback')) as settled_at,
                 (array_agg(v.data->>'status' order by v.source_updated_at, reports.status_rank(v.data->>'status'),
                            v.data->>'status' collate "C"))[1] as first_status
          from mirror.versions v
          where v.resource in ('transaction', 'transaction.inline') and v.id = c.id
            and (p_as_of is null or v.recorded_at <= p_as_of)
        ) h
      ), closed as (
        select max(c.to_at) as to_at from reports.closes c where c.closed_at <= coalesce(p_as_of, 'infinity')
      ), booked as (
        select f.object_id, min(f.booked_at) filter (where f.amount < 0) as taken_back_at
        from reports.closed_movements f join reports.closes c on c.id = f.close
        where c.closed_at <= coalesce(p_as_of, 'infinity') and f.kind = 'sale'
          and f.object_id in (select k.id from known k where k.status in ('voided', 'failed'))
        group by f.object_id
      )
      select k.id, k.order_id, k.status, k.currency, k.amount, k.created_at, e.ended_at
      from known k
      left join booked b on b.object_id = k.id
      cross join closed
      cross join lateral (
        select case
          when k.status in ${unsettled} then null
          when k.was_unsettled and k.settled_at is not null then k.settled_at
          when k.status in ('voided', 'failed') then coalesce(b.taken_back_at, closed.to_at)
          when k.first_status = 'succeeded' and k.settled_at < k.created_at + interval '7 days' then k.settled_at
          else k.created_at end as ended_at
      ) e
      where case
          when k.status in ${unsettled} then reports.is_paid((
            select o.status from reports.orders(p_as_of) o where o.id collate "C" = k.order_id limit 1))
          when k.status in ('voided', 'failed') and k.settled_at is null then b.object_id is not null
          -- The sandbox settles at once, and a moment later is at once.
          else e.ended_at > k.created_at + interval '2 seconds' end
    $$;
  `);

/** What is known of an event as of a time is what a worker had told of it by then. */
async function deliveries(db: Knex): Promise<void> {
  await db.raw(`
    alter table inbox.progress add column object_known_at timestamptz;
    comment on column inbox.progress.object_known_at is
      'when a worker first told which object the event is about; a replay does not change it';
    update inbox.progress set object_known_at = settled_at where resource_id is not null;

    create or replace function reports.last_changes(p_as_of timestamptz default null)
    returns table (resource text, id text, event text, at timestamptz)
    language sql stable parallel safe as $$
      with state as (
        select 'order' as resource, o.id, o.status, null::bigint as cycle, null::timestamptz as period_start,
               o.created_at, o.source_updated_at as at
        from mirror.orders o
        where o.version <> '' and (p_as_of is null or not exists (
          select from mirror.versions c where c.resource = 'order' and c.id = o.id and c.recorded_at > p_as_of))
        union all
        select 'subscription', s.id, s.status, s.current_billing_cycle, s.current_period_start, s.created_at,
               s.source_updated_at
        from mirror.subscriptions s
        where s.version <> '' and (p_as_of is null or not exists (
          select from mirror.versions c where c.resource = 'subscription' and c.id = s.id and c.recorded_at > p_as_of))
        union all
        select 'customer', c.id, null, null, null, c.created_at, c.created_at
        from mirror.customers c
        where c.version <> '' and (p_as_of is null or not exists (
          select from mirror.versions v where v.resource = 'customer' and v.id = c.id and v.recorded_at > p_as_of))
        union all
        select k.resource, k.id, reports.code_of(k.data->'status'), reports.whole(k.data->'current_billing_cycle'),
               reports.moment(k.data->'current_period_start'), reports.moment(k.data->'created_at'),
               case when k.resource = 'customer' then reports.moment(k.data->'created_at') else k.source_updated_at end
        from (
          select distinct on (v.resource, v.id) v.resource, v.id, v.data, v.source_updated_at
          from mirror.versions v
          where p_as_of is not null and v.resource in ('order', 'subscription', 'customer')
            and v.recorded_at <= p_as_of and (v.resource, v.id) in (
              select c.resource, c.id from mirror.versions c
              where c.resource in ('order', 'subscription', 'customer') and c.recorded_at > p_as_of)
          order by v.resource, v.id, v.source_updated_at desc, v.observed_at desc nulls last,
                   reports.status_rank(v.data->>'status') desc, v.content_hash desc
        ) k
      )
      , settled as (
        select t.order_id, max(t.created_at) as made_at, max(t.updated_at) filter (
                 where t.type = 'sale' and t.status in ('in_progress', 'succeeded')
                   and t.updated_at > t.created_at + interval '2 seconds') as settled_at
        from reports.transactions(p_as_of) t where t.order_id is not null group by t.order_id
      )
      select s.resource, s.id,
             case s.resource
               when 'customer' then 'customer.created'
               when 'order' then case
                 when s.status in ('partially_refunded', 'refunded') then 'order.refunded'
                 when s.status like 'chargeback%' then 'order.(chargeback)'
                 when s.status = 'pending' then 'order.created'
                 when s.status in ('succeeded', 'failed') then 'order.' || s.status end
               else case
                 when s.status = 'canceled' then 'subscription.canceled'
                 when s.status not in ('active', 'failed') then null
                 when s.cycle <= 1 and s.at < s.created_at + interval '5 seconds' then 'subscription.created'
                 when s.cycle > 1 and s.period_start >= s.at - interval '1 hour' then 'subscription.charged'
                 when s.status = 'active' then 'subscription.updated' end
             end, coalesce(w.made_at, s.at)
      from state s
      left join settled w on s.resource = 'order' and w.order_id = s.id and s.status not like 'chargeback%'
        and s.at between w.settled_at - interval '2 seconds' and w.settled_at + interval '2 seconds'
        and w.made_at < s.at - interval '2 seconds'
    $$;

    create or replace function reports.delivery_statement(p_from timestamptz, p_to timestamptz, p_zone text,
                                                          p_as_of timestamptz default null)
    returns table (resource text, event text, changes bigint, announced bigint, received bigint, in_time bigint,
                   late bigint, missed bigint, healed bigint, first_fill bigint)
    language sql stable parallel safe as $$
      with changed as (
        select c.* from reports.last_changes(p_as_of) c where c.at >= p_from and c.at < p_to
      ), filled as (
        select max(r.t0) as until from reconcile.runs r
        where r.first_fill and r.started_at <= coalesce(p_as_of, 'infinity')
      ), arrived as (
        select c.resource, c.id, min(r.received_at) as received_at
        from changed c
        join inbox.progress p on p.resource_type = c.resource and p.resource_id = c.id
        join inbox.receipts r on r.seq = p.seq
        where r.event_created_at >= c.at - interval '2 seconds'
          and (p_as_of is null or p.object_known_at <= p_as_of and r.received_at <= p_as_of)
          and (r.type = c.event or c.event = 'order.(chargeback)')
        group by c.resource, c.id
      ), traced as (
        select c.resource, c.event, c.at, a.received_at, a.received_at is null and c.at < f.until is true as is_fill
        from changed c cross join filled f
        left join arrived a on a.resource = c.resource and a.id = c.id
      ), counted as (
        select t.resource, t.event, count(*) filter (where not t.is_fill) as changes,
               count(*) filter (where t.event is not null and not t.is_fill) as announced,
               count(t.received_at) as received,
               count(*) filter (where t.received_at < t.at + interval '10 minutes') as in_time,
               count(*) filter (where t.event is not null and t.received_at is null and not t.is_fill) as healed,
               count(*) filter (where t.is_fill) as fill
        from traced t group by t.resource, t.event
      ), unhealed as (
        select l.resource, count(*) as n from reports.finding_lives(p_as_of) l
        where l.class in ('missing_here', 'behind') and l.resource in ('order', 'subscription', 'customer')
          and l.healed_at is null and l.first_seen >= p_from and l.first_seen < p_to
        group by l.resource
      )
      -- What is not here yet cannot tell which event it lacks.
      select c.resource, coalesce(c.event, 'none is documented'), c.changes, c.announced, c.received, c.in_time,
             c.received - c.in_time, c.healed, c.healed, c.fill
      from counted c
      union all
      select u.resource, 'not yet healed', u.n, u.n, 0, 0, 0, u.n, 0, 0 from unhealed u
    $$;
  `);
}

export function down(): Promise<void> {
  throw new Error(
    "what reports say as of a time cannot be taken back: restore the database from a backup",
  );
}
