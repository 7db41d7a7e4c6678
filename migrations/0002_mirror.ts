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
      seen_until text collate "C" not null default '',
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
      seen_until text collate "C" not null default '',
      source_updated_at timestamptz,
      content_hash text,
      absent_version text collate "C" not null default '',
      deleted_at timestamptz,
      last_cause text not null
    );
    create index customers_created on mirror.customers (created_at, id);

    create table mirror.chargebacks (
      key text collate "C" primary key,
      order_id text collate "C",
      transaction_id text collate "C",
      state text not null check (state in ('opened', 'accepted', 'dismissed')),
      amount bigint,
      currency text,
      opened_at timestamptz not null,
      accepted_at timestamptz,
      dismissed_at timestamptz,
      resolved_at timestamptz,
      last_cause text not null
    );
    create index chargebacks_order on mirror.chargebacks (order_id);
    comment on column mirror.chargebacks.key is 'order_id; the transaction''s id where there is no order';

    create table mirror.versions (
      seq bigint generated always as identity primary key,
      resource text not null,
      id text collate "C" not null,
      source_updated_at timestamptz not null,
      content_hash text not null,
      recorded_at timestamptz not null default clock_timestamp(),
      observed_at timestamptz,
      cause text not null,
      data jsonb not null,
      unique (resource, id, source_updated_at, content_hash)
    );
    comment on table mirror.versions is 'Every distinct authentic state of every group of fields, append-only.';
    create index versions_recorded on mirror.versions (recorded_at);
    create index versions_chargeback on mirror.versions (id)
      where data->>'status' like 'chargeback%';
    create index versions_chargeback_order on mirror.versions ((data->>'order_id'))
      where data->>'status' like 'chargeback%' and resource in ('transaction', 'transaction.inline');

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
