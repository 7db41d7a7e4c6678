import type { Knex } from "knex";

/** What identities compare with, this deployment's endpoint at the service, and the record of erasures. */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    create table reconcile.daily_sums (
      run bigint not null references reconcile.runs (id),
      slice integer not null,
      day date not null,
      currency text collate "C" not null,
      type text collate "C" not null,
      status text collate "C" not null,
      n bigint not null,
      sum_minor numeric not null,
      primary key (run, slice, day, currency, type, status)
    );
    comment on table reconcile.daily_sums is
      'What a slice of transactions added up to at the service, by the merchant''s days.';

    create table reconcile.endpoints (
      id text collate "C" primary key,
      url text not null,
      -- Of receiver.secrets; null where its secret is not in the database.
      secret_id text,
      -- Service time; until then its former secret signs, too.
      rotation_ends_at timestamptz,
      registered_at timestamptz not null default now()
    );
    comment on table reconcile.endpoints is 'The webhook endpoints that were registered or rotated from here.';

    create table reconcile.endpoint_calls (
      idempotency_key uuid primary key,
      kind text not null check (kind in ('register', 'rotate')),
      endpoint_id text collate "C",
      body jsonb not null,
      created_at timestamptz not null default now(),
      settled_at timestamptz,
      -- hidden: it was made, but the repeat of the call does not show the secret any more.
      outcome text check (outcome in ('done', 'hidden', 'refused')),
      check ((settled_at is null) = (outcome is null))
    );
    create unique index endpoint_calls_open on reconcile.endpoint_calls ((true)) where settled_at is null;
    comment on table reconcile.endpoint_calls is
      'Calls whose answer holds a secret once only, written before they are made: a crash can repeat them.';

    create table mirror.erasures (
      customer_id text collate "C" primary key,
      first_at timestamptz not null default now(),
      last_at timestamptz not null default now()
    );
    create table mirror.erasure_log (
      id bigint generated always as identity primary key,
      customer_id text collate "C" not null,
      erased_at timestamptz not null default now(),
      erased_by text not null,
      reason text,
      counts jsonb not null
    );
    create function mirror.refuse_log_change() returns trigger language plpgsql as $$
    begin
      raise exception 'mirror.erasure_log is append-only (% refused)', lower(tg_op)
        using errcode = 'restrict_violation';
    end $$;
    create trigger erasure_log_append_only before update or delete or truncate on mirror.erasure_log
      for each statement execute function mirror.refuse_log_change();
    comment on table mirror.erasures is 'People whose data is redacted, now and whenever it is seen again.';
  `);
}

export async function down(db: Knex): Promise<void> {
  await db.raw(`
    drop table mirror.erasure_log, mirror.erasures;
    drop function mirror.refuse_log_change();
    drop table reconcile.endpoint_calls, reconcile.endpoints, reconcile.daily_sums`);
}
