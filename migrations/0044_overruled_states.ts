import type { Knex } from "knex";

/** States that a person's decision overruled say which one it was. */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    alter table mirror.unbelieved add column heal bigint references mirror.heals (seq);
    comment on column mirror.unbelieved.heal is
      'the decision that overruled it: an event that brings it again changes nothing; null: it was never believed';
    comment on table mirror.unbelieved is
      'States that are dated more than an hour after they came, or that a person overruled: no row shows them, and no '
      'report reads them.';
  `);
}

export async function down(db: Knex): Promise<void> {
  await db.raw("alter table mirror.unbelieved drop column heal");
}
