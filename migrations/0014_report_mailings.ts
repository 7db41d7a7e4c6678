import type { Knex } from "knex";

/** Reports that are mailed: a row for each period, so that however many workers ask for one, it is sent once. */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    create table reports.mailings (
      -- 'day:2026-11-20', 'month:2026-10'
      key text collate "C" primary key,
      from_day date not null,
      to_day date not null,
      -- What the mirror said then is mailed: a repeat is the same.
      as_of timestamptz not null,
      -- A repeat carries the same one, so that a mailbox can know it.
      message_id text not null,
      state text not null default 'due' check (state in ('due', 'sent', 'failed')),
      attempts integer not null default 0,
      ordered_at timestamptz not null default now(),
      next_attempt_at timestamptz not null default now(),
      settled_at timestamptz,
      -- What the mail server answered last, as a code.
      error text
    );
    create index mailings_due on reports.mailings (next_attempt_at) where state = 'due';
  `);
}

export async function down(db: Knex): Promise<void> {
  await db.raw(`drop table reports.mailings`);
}
