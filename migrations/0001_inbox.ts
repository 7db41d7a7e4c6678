import type { Knex } from "knex";

/**
 * The durable record of what arrived. The bytes never change, the state of the work on them does:
 * they are two tables, because changing a state column beside 1.5 KB of bytes rewrites the bytes.
 * `inbox.events` is both together, and what people and tools read.
 */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    create schema inbox;

    create table inbox.receipts (
      seq bigint generated always as identity primary key,
      event_id text collate "C" not null,
      raw_sha256 bytea not null,
      type text,
      api_version text,
      event_created_at timestamptz,
      received_at timestamptz not null default now(),
      raw bytea,
      secret_id text not null,
      unique (event_id, raw_sha256)
    );
    -- Compressing a body costs more than storing it.
    alter table inbox.receipts alter column raw set storage external;
    comment on table inbox.receipts is 'What arrived and verified, byte for byte; raw is null after a prune.';

    -- Written by the same statement as the receipt, so no foreign key is needed to keep them together.
    create table inbox.progress (
      seq bigint primary key,
      state text not null default 'received'
        check (state in ('received', 'applied', 'stale', 'ignored', 'failed', 'dead')),
      attempts integer not null default 0,
      next_attempt_at timestamptz,
      reason text,
      resource_type text,
      resource_id text collate "C",
      settled_at timestamptz
    ) with (autovacuum_vacuum_scale_factor = 0.05);
    create index progress_received on inbox.progress (seq) where state = 'received';
    create index progress_failed on inbox.progress (next_attempt_at) where state = 'failed';
    create index progress_dead on inbox.progress (seq) where state = 'dead';
    create index progress_resource on inbox.progress (resource_id, resource_type) where resource_id is not null;
    comment on column inbox.progress.next_attempt_at is
      'failed: when it is tried again; received: not relayed to the queue before this time';

    -- Apart from progress: a receiver that counts must not wait for a worker, nor hide a row from one.
    create table inbox.repeats (
      seq bigint primary key,
      times integer not null
    );
    comment on table inbox.repeats is 'How often what is stored came again.';

    create view inbox.events as
      select r.seq, r.event_id, r.raw_sha256, r.type, r.api_version, r.event_created_at, r.received_at,
             r.raw, r.secret_id, p.state, p.attempts, p.next_attempt_at, p.reason, p.resource_type,
             p.resource_id, 1 + coalesce(x.times, 0) as deliveries, p.settled_at
      from inbox.receipts r join inbox.progress p using (seq) left join inbox.repeats x using (seq);

    create table inbox.fetches (
      resource text not null,
      id text collate "C" not null,
      reason text not null,
      requested_at timestamptz not null default now(),
      due_at timestamptz not null default now(),
      not_before timestamptz,
      generation integer not null default 1,
      attempts integer not null default 0,
      missing_since timestamptz,
      last_error text,
      primary key (resource, id)
    );
    create index fetches_due on inbox.fetches (due_at);
    comment on column inbox.fetches.not_before is
      'service time: an answer dated earlier does not settle the fetch';
  `);
}

export async function down(db: Knex): Promise<void> {
  await db.raw(`drop schema inbox cascade`);
}
