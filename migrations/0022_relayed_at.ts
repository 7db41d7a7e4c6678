import type { Knex } from "knex";

/**
 * When the relay handed an event over, apart from when it may be tried: a worker that finds an event in a late or a
 * second job can tell whether it is due.
 */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    alter table inbox.progress add column relayed_at timestamptz;
    update inbox.progress set next_attempt_at = null where state = 'received' and next_attempt_at is not null;
    comment on column inbox.progress.next_attempt_at is 'failed: not tried again before this time';
    comment on column inbox.progress.relayed_at is
      'unapplied: when the relay last put it into the queue; left alone for a while from then on'`);
}

export async function down(db: Knex): Promise<void> {
  await db.raw(`
    alter table inbox.progress drop column relayed_at;
    comment on column inbox.progress.next_attempt_at is
      'failed: when it is tried again; received: not relayed to the queue before this time'`);
}
