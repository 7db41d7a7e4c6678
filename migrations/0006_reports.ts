import type { Knex } from "knex";

/**
 * What every report is made of, as functions of `p_as_of`: null reads the mirror as it is, a time reads what it said
 * then. What has no state recorded since then is as it is now; only the rest is read from the history. They are plain
 * SQL, so that the planner looks through them. Money is bigint minor units.
 */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    create schema reports;

    create table reports.currencies (
      code text collate "C" primary key check (code ~ '^[a-z]{3}$'),
      exponent smallint not null
    );
    comment on table reports.currencies is
      'ISO 4217: how many decimals a minor unit is, where that is not 2. A currency that is not here has 2.';
    insert into reports.currencies (code, exponent)
    select unnest(string_to_array('bif clp djf gnf isk jpy kmf krw pyg rwf ugx uyi vnd vuv xaf xof xpf', ' ')), 0
    union all select unnest(string_to_array('bhd iqd jod kwd lyd omr tnd', ' ')), 3
    union all select unnest(string_to_array('clf uyw', ' ')), 4;

    create table reports.decline_groups (code text collate "C" primary key, code_group text not null);
    insert into reports.decline_groups (code_group, code)
    select 'soft', unnest(array['insufficient_funds', 'do_not_honor', 'card_limit_exceeded', 'processor_declined',
                                'issuer_unavailable', 'unknown'])
    union all select 'card_data', unnest(array['expired_card', 'incorrect_cvv', 'invalid_account'])
    union all select 'account_status', unnest(array['blocked_card', 'closed_card', 'contact_bank', 'transaction_not_allowed'])
    union all select 'fraud', unnest(array['lost_stolen_card', 'fraud_suspected'])
    union all select 'configuration', unnest(array['duplicate_transaction', 'invalid_merchant_configuration',
                                                   'validation_error']);

    -- Only decides between states of one time that no read has settled; see src/mirror/version.ts.
    create function reports.status_rank(p_status text) returns integer
    language sql immutable parallel safe as $$
      select case
        when p_status = 'pending' then 0 when p_status = 'in_progress' then 1 when p_status = 'failed' then 2
        when p_status in ('active', 'succeeded') then 3 when p_status in ('paused', 'past_due') then 4
        when p_status in ('partially_refunded', 'refund_failed') then 5 when p_status in ('refunded', 'voided') then 6
        when p_status = 'chargeback' then 7
        when p_status in ('completed', 'chargeback_accepted', 'chargeback_dismissed') then 8
        when p_status = 'canceled' then 9 else 4 end
    $$;

    -- A field of an unexpected type is null in a column and stays in the data, as the mirror does it.
    create function reports.whole(p_value jsonb) returns bigint
    language sql immutable parallel safe as $$
      select case when jsonb_typeof(p_value) = 'number' and p_value::text ~ '^(-|)[0-9]{1,18}$'
             then p_value::text::bigint end
    $$;

    create function reports.orders(p_as_of timestamptz default null)
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
      select k.id, k.data->>'order_number', k.data->>'customer_id', k.data->>'status', reports.whole(k.data->'total'),
             k.data->>'currency', k.data->>'failure_code', k.data->>'subscription_id',
             reports.whole(k.data->'subscription_cycle'), k.data->'payment_method'->>'card_brand',
             (k.data->>'created_at')::timestamptz
      from (
        select distinct on (v.id) v.id, v.data from mirror.versions v
        where p_as_of is not null and v.resource = 'order' and v.recorded_at <= p_as_of
          and v.id in (select c.id from mirror.versions c where c.resource = 'order' and c.recorded_at > p_as_of)
        order by v.id, v.source_updated_at desc, v.observed_at desc nulls last,
                 reports.status_rank(v.data->>'status') desc, v.content_hash desc
      ) k
    $$;

    -- As itself a transaction settles every field it has; of its status, the later of the two looks counts.
    create function reports.transactions(p_as_of timestamptz default null)
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
      select k.id, coalesce(k.own, k.inline)->>'type',
             case when k.own is null or k.inline_seen > k.own_seen then k.inline->>'status' else k.own->>'status' end,
             reports.whole(coalesce(k.own, k.inline)->'amount'), coalesce(k.own, k.inline)->>'currency',
             coalesce(k.own, k.inline)->>'customer_id', coalesce(k.own->>'order_id', k.inline->>'order_id'),
             coalesce(k.own->>'failure_code', k.inline->>'failure_code'),
             (coalesce(k.own, k.inline)->>'created_at')::timestamptz, coalesce(k.own_at, k.inline_at)
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
    $$;

    -- The states of subscriptions in order of time: what changed, and when the service says so.
    create function reports.subscription_states(p_as_of timestamptz default null)
    returns table (id text, changed_at timestamptz, nth bigint, is_last boolean, status text, currency text,
                   amount bigint, cycle_interval text, interval_count bigint, created_at timestamptz,
                   canceled_at timestamptz)
    language sql stable parallel safe as $$
      select v.id, v.source_updated_at,
             row_number() over (partition by v.id order by v.source_updated_at, v.observed_at nulls first,
                                reports.status_rank(v.data->>'status'), v.content_hash),
             row_number() over (partition by v.id order by v.source_updated_at desc, v.observed_at desc nulls last,
                                reports.status_rank(v.data->>'status') desc, v.content_hash desc) = 1,
             v.data->>'status', v.data->'plan'->>'currency', reports.whole(v.data->'plan'->'amount'),
             v.data->'billing_cycle'->>'interval', reports.whole(v.data->'billing_cycle'->'interval_count'),
             (v.data->>'created_at')::timestamptz, (v.data->>'canceled_at')::timestamptz
      from mirror.versions v
      where v.resource = 'subscription' and (p_as_of is null or v.recorded_at <= p_as_of)
    $$;
  `);
}

export async function down(db: Knex): Promise<void> {
  await db.raw(`drop schema reports cascade`);
}
