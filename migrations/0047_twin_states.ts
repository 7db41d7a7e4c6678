import type { Knex } from "knex";

/**
 * Two states that differed in personal data only have one content when the person was erased. Both stay in the history:
 * when each was recorded, and whether a read saw it, is what reports as of a time rest on.
 */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    alter table mirror.versions
      add column twin smallint not null default 0,
      drop constraint versions_pkey,
      add primary key (resource, id, source_updated_at, content_hash, twin);
    comment on column mirror.versions.twin is
      'Above 0 where an erasure made the content equal to that of another state; only an erasure writes it.';
  `);
}

/** Fails where there are twins. */
export async function down(db: Knex): Promise<void> {
  await db.raw(`
    alter table mirror.versions
      drop constraint versions_pkey,
      add primary key (resource, id, source_updated_at, content_hash),
      drop column twin;
  `);
}
