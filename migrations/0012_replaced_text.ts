import type { Knex } from "knex";

/** Which states hold U+FFFD in place of text that jsonb refuses: NUL and lone surrogates. */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    alter table mirror.versions add column replaced_text boolean not null default false;
    comment on column mirror.versions.replaced_text is
      'NUL or a lone surrogate became U+FFFD in data; the exact bytes of an event are in inbox.receipts.raw'`);
}

export async function down(db: Knex): Promise<void> {
  await db.raw("alter table mirror.versions drop column replaced_text");
}
