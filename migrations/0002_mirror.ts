import type { Knex } from "knex";

/**
 * The mirror. A row is made of groups of fields; `version` (and `<group>_version`) orders the states
 * of a group as bytes, '' means that the group was never seen. Money is bigint minor units.
 */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    create schema mirror;

    create table mirror.orders (
      id text collate "C" primary key,
      order_number text,
      customer_id text collate "C",
      status text,
      subtotal bigint,
      discount_amount bigint,
      total bigint,
      currency text,
      description text,
      failure_code text,
      failure_reason text,
      subscription_id text collate "C",
      subscription_cycle integer,
      payment_method_id text collate "C",
      card_brand text,
      card_last_four text,
      coupon_code text,
      created_at timestamptz,
      updated_at timestamptz,
      data jsonb,
      version text collate "C" not null default '',
      source_updated_at timestamptz,
      content_hash text,
      deleted_at timestamptz,
      attempt_count integer,
      next_retry_at timestamptz,
      dunning_version text collate "C" not null default '',
      items jsonb,
      items_version text collate "C" not null default '',
      last_cause text not null
    );
    create index orders_customer on mirror.orders (customer_id);
    create index orders_subscription on mirror.orders (subscription_id) where subscription_id is not null;
    create index orders_created on mirror.orders (created_at, id);

    create table mirror.transactions (
      id text collate "C" primary key,
      type text,
      status text,
      amount bigint,
      currency text,
      customer_id text collate "C",
      order_id text collate "C",
      failure_reason text,
      failure_code text,
      processor_transaction_id text,
      attempt_count integer,
      payment_method_id text collate "C",
      card_brand text,
      card_last_four text,
      created_at timestamptz,
      updated_at timestamptz,
      data jsonb,
      version text collate "C" not null default '',
      source_updated_at timestamptz,
      content_hash text,
      deleted_at timestamptz,
      inline jsonb,
      inline_version text collate "C" not null default '',
      last_cause text not null
    );
    create index transactions_order on mirror.transactions (order_id);
    create index transactions_created on mirror.transactions (created_at, id);
    comment on column mirror.transactions.inline is
      'the transaction as its order last carried it; data is the transaction as itself';

    create table mirror.subscriptions (
      id text collate "C" primary key,
      customer_id text collate "C",
      plan_id text collate "C",
      status text,
      amount bigint,
      currency text,
      current_period_start timestamptz,
      current_period_end timestamptz,
      current_billing_cycle integer,
      total_billing_cycles integer,
      next_billing_date timestamptz,
      start_date timestamptz,
      end_date timestamptz,
      canceled_at timestamptz,
      payment_method_id text collate "C",
      card_brand text,
      card_last_four text,
      created_at timestamptz,
      updated_at timestamptz,
      data jsonb,
      version text collate "C" not null default '',
      source_updated_at timestamptz,
      content_hash text,
      deleted_at timestamptz,
      failure_reason text,
      attempt_count integer,
      next_retry_at timestamptz,
      detail_version text collate "C" not null default '',
      last_cause text not null
    );
    create index subscriptions_customer on mirror.subscriptions (customer_id);
    create index subscriptions_created on mirror.subscriptions (created_at, id);

    create table mirror.customers (
      id text collate "C" primary key,
      email text,
      first_name text,
      last_name text,
      phone text,
      company text,
      default_payment_method_id text collate "C",
      created_at timestamptz,
      updated_at timestamptz,
      deleted boolean,
      data jsonb,
      version text collate "C" not null default '',
      source_updated_at timestamptz,
      content_hash text,
      absent_version text collate "C" not null default '',
      deleted_at timestamptz,
      last_cause text not null
    );
    create index customers_created on mirror.customers (created_at, id);

    create table mirror.versions (
      seq bigint generated always as identity,
      resource text collate "C" not null,
      id text collate "C" not null,
      source_updated_at timestamptz not null,
      content_hash text collate "C" not null,
      recorded_at timestamptz not null default clock_timestamp(),
      observed_at timestamptz,
      cause text not null,
      data jsonb not null,
      primary key (resource, id, source_updated_at, content_hash)
    );
    comment on table mirror.versions is 'Every distinct authentic state of every group of fields, append-only.';
    -- Rows are recorded in the order of the clock: a few pages index millions of them.
    create index versions_recorded on mirror.versions using brin (recorded_at) with (autosummarize = on);
    create index versions_chargeback on mirror.versions (resource, id)
      where data->>'status' like 'chargeback%';

    -- A chargeback is what the states of an order and of its sale say. It is a view, so that no order of arrival,
    -- no batch and no worker that looks at the same moment can make a difference. It opens with the first
    -- chargeback state of either; it ends as the order says, or when what showed it leaves those states again.
    create view mirror.chargebacks as
    select k.key, k.order_id, sale.id as transaction_id, known.state,
           coalesce(sale.amount, o.total) as amount, coalesce(sale.currency, o.currency) as currency,
           least(ordered.first_at, sale.first_at) as opened_at,
           ordered.accepted_at,
           case when known.state = 'dismissed' then known.ended_at else ordered.dismissed_at end as dismissed_at,
           case when known.state <> 'opened' then known.ended_at end as resolved_at,
           coalesce(ordered.cause, sale.cause) as last_cause
    from (
      select v.id as key, v.id as order_id from mirror.versions v
      where v.resource = 'order' and v.data->>'status' like 'chargeback%'
      union
      select coalesce(t.order_id, t.id), t.order_id
      from mirror.versions v join mirror.transactions t on t.id = v.id
      where v.resource in ('transaction', 'transaction.inline') and v.data->>'status' like 'chargeback%'
    ) k
    left join mirror.orders o on o.id = k.order_id
    left join lateral (
      select shown.*, (
          select min(v.source_updated_at) from mirror.versions v
          where v.resource = 'order' and v.id = k.order_id and v.source_updated_at > shown.last_at
            and v.data->>'status' not like 'chargeback%') as left_at
      from (
        select min(v.source_updated_at) as first_at, max(v.source_updated_at) as last_at,
               min(v.source_updated_at) filter (where v.data->>'status' = 'chargeback_accepted') as accepted_at,
               min(v.source_updated_at) filter (where v.data->>'status' = 'chargeback_dismissed') as dismissed_at,
               (array_agg(v.data->>'status' order by v.source_updated_at desc, v.content_hash))[1] as last_status,
               (array_agg(v.cause order by v.source_updated_at desc, v.content_hash))[1] as cause
        from mirror.versions v
        where v.resource = 'order' and v.id = k.order_id and v.data->>'status' like 'chargeback%'
      ) shown
    ) ordered on true
    left join lateral (
      select t.id, t.amount, t.currency, t.status, shown.*, (
          select min(v.source_updated_at) from mirror.versions v
          where v.resource in ('transaction', 'transaction.inline') and v.id = t.id
            and v.source_updated_at > shown.last_at and v.data->>'status' not like 'chargeback%') as left_at
      from mirror.transactions t
      cross join lateral (
        select min(v.source_updated_at) as first_at, max(v.source_updated_at) as last_at,
               (array_agg(v.cause order by v.source_updated_at desc, v.content_hash))[1] as cause
        from mirror.versions v
        where v.resource in ('transaction', 'transaction.inline') and v.id = t.id
          and v.data->>'status' like 'chargeback%'
      ) shown
      where (t.order_id = k.order_id or (k.order_id is null and t.id = k.key))
        and (shown.first_at is not null or (t.type = 'sale' and t.status not in ('failed', 'voided')))
      order by shown.first_at is null, t.created_at, t.id
      limit 1
    ) sale on true
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
          when ordered.first_at is not null
            then coalesce(ordered.dismissed_at, ordered.left_at, o.source_updated_at)
          else coalesce(sale.left_at, sale.last_at) end as ended_at
    ) known;
    comment on view mirror.chargebacks is
      'key: order_id; the transaction''s id where there is no order';

    -- Only the audited erasure of one person may change history, and says so in its transaction.
    create function mirror.refuse_change() returns trigger language plpgsql as $$
    begin
      if current_setting('tallyhook.erasure', true) = 'on' and tg_op <> 'TRUNCATE' then
        return case tg_op when 'DELETE' then old else new end;
      end if;
      raise exception 'mirror.versions is append-only (% refused)', lower(tg_op)
        using errcode = 'restrict_violation',
              hint = 'Only "tallyhook customers erase" may change history.';
    end $$;
    create trigger versions_append_only before update or delete on mirror.versions
      for each row execute function mirror.refuse_change();
    create trigger versions_no_truncate before truncate on mirror.versions
      for each statement execute function mirror.refuse_change();
  `);
}

export async function down(db: Knex): Promise<void> {
  await db.raw(`drop schema mirror cascade`);
}
