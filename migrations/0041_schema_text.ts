import type { Knex } from "knex";

/**
 * What the text of functions, views and triggers was when the migrations had made them, so that `doctor` can say which
 * of them somebody changed since. `src/platform/schema-text.ts` writes it at the end of each migration.
 */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    create table tallyhook_schema_text (
      kind text collate "C" not null,
      name text collate "C" not null,
      sha256 text not null,
      -- The server words views and triggers; another major version may word them otherwise.
      server_major integer not null,
      primary key (kind, name)
    );
    comment on table tallyhook_schema_text is
      'SHA-256 of the text of each function, view and trigger, as the migrations made it.';
  `);
}

export async function down(db: Knex): Promise<void> {
  await db.raw(`drop table tallyhook_schema_text`);
}
