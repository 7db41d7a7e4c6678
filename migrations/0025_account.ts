import type { Knex } from "knex";

/** Whose objects the mirror holds, where the service names the account. */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    create table reconcile.account (
      only_one boolean primary key default true check (only_one),
      id text collate "C" not null,
      kept_at timestamptz not null default clock_timestamp()
    );
    comment on table reconcile.account is 'The account that the first run read, for ever: another one''s key is refused.'`);
}

export async function down(db: Knex): Promise<void> {
  await db.raw(`drop table reconcile.account`);
}
