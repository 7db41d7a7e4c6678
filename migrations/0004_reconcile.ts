import type { Knex } from "knex";

/**
 * What reconciliation read, what it doubts, and what it found. The ledger of slices is what `complete` is
 * computed from; findings are kept for ever.
 */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    create schema reconcile;

    create table reconcile.runs (
      id bigint generated always as identity primary key,
      run_key text collate "C" not null unique,
      kind text not null check (kind in ('nightly', 'full', 'range', 'import')),
      -- Service time, as are the bounds and every read_at: the service's lists are cut by its own clock.
      t0 timestamptz not null,
      range_from timestamptz,
      range_to timestamptz,
      report_only boolean not null default false,
      first_fill boolean not null default false,
      page_size integer,
      -- This machine's clock.
      started_at timestamptz not null default clock_timestamp(),
      finished_at timestamptz,
      state text not null default 'running'
        check (state in ('running', 'complete', 'incomplete', 'abandoned')),
      totals jsonb not null default '{}',
      error text
    );
    create index runs_kind on reconcile.runs (kind, started_at);
    comment on column reconcile.runs.t0 is
      'the run answers for what was created before; the service''s Date, less ten minutes';

    create table reconcile.coverage (
      run bigint not null references reconcile.runs (id),
      slice integer not null,
      step text not null,
      resource text not null,
      path text not null,
      filter jsonb not null,
      direction text not null default 'newest_first' check (direction in ('newest_first', 'oldest_first')),
      created_from timestamptz,
      created_before timestamptz,
      -- Whether it shows every object of its bounds, so that what it does not show is not there.
      is_closed boolean not null,
      reason text not null,
      state text not null default 'pending' check (state in ('pending', 'complete', 'skipped', 'failed')),
      checkpoint jsonb,
      pages integer not null default 0,
      rows bigint not null default 0,
      read_at timestamptz,
      -- What became of its rows, by verdict.
      tally jsonb not null default '{}',
      closes_cycle boolean not null default false,
      note text,
      primary key (run, slice)
    );
    create index coverage_read on reconcile.coverage (resource, read_at) where state = 'complete' and is_closed;
    comment on table reconcile.coverage is
      'Which slices of the service''s lists were read, to their end; a page''s checkpoint commits with its changes.';
    comment on column reconcile.coverage.read_at is 'the service''s Date of the first page: nothing later is proved';

    -- Open items of the mirror that a run has read, so that only the others are read by id. Of no use after it.
    create table reconcile.seen (
      run bigint not null,
      resource text not null,
      id text collate "C" not null,
      primary key (run, resource, id)
    );

    create table reconcile.doubts (
      run bigint not null references reconcile.runs (id),
      resource text not null,
      id text collate "C" not null,
      why text not null,
      -- The slice that should have shown it, for what was not listed.
      slice integer,
      noticed_at timestamptz not null,
      due_at timestamptz not null,
      missing_since timestamptz,
      reads integer not null default 0,
      state text not null default 'waiting' check (state in ('waiting', 'absent', 'settled')),
      outcome text,
      primary key (run, resource, id)
    );
    create index doubts_open on reconcile.doubts (run, due_at) where state <> 'settled';
    comment on table reconcile.doubts is 'Objects to be read again by id, after the grace (service time).';

    create table reconcile.findings (
      id bigint generated always as identity primary key,
      key text collate "C" not null unique,
      class text not null,
      identity text,
      severity text not null check (severity in ('critical', 'high', 'warning')),
      resource text,
      object_id text collate "C",
      differences jsonb not null default '[]',
      amount_at_risk_minor bigint,
      currency text,
      state text not null default 'open' check (state in ('open', 'reopened', 'acknowledged', 'healed')),
      first_seen timestamptz not null,
      last_seen timestamptz not null,
      healed_at timestamptz,
      cause text check (cause in
        ('missed_webhook', 'late', 'out_of_band_edit', 'our_fault', 'unexplained', 'initial_import')),
      evidence jsonb not null default '{}',
      -- Earlier lives of the same finding, oldest first.
      history jsonb not null default '[]',
      first_run bigint references reconcile.runs (id),
      run bigint references reconcile.runs (id),
      ack_by text,
      ack_at timestamptz,
      ack_note text
    );
    create index findings_unhealed on reconcile.findings (class, identity) where state <> 'healed';
    create index findings_object on reconcile.findings (object_id, resource);
    create index findings_run on reconcile.findings (run);
    comment on column reconcile.findings.differences is
      '[{"field", "service", "mirror"}], money first';
  `);
}

export async function down(db: Knex): Promise<void> {
  await db.raw(`drop schema reconcile cascade`);
}
