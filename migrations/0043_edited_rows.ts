import type { Knex } from "knex";

/**
 * Rows that were edited by hand have a class of finding of their own; and the history of findings tells since when each
 * matters also of those that were found before it was recorded.
 */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    -- Only the check of all rows writes the columns into the evidence.
    update reconcile.findings f
    set class = 'edited_row', key = format('edited_row:%s:%s', f.resource, f.object_id)
    where f.state <> 'healed' and f.class = 'mismatch' and f.evidence->'columns' is not null;

    -- Their object_at was filled in while no version was written, so that as of a time they touched every period.
    insert into reconcile.finding_versions (finding, content)
    select f.id, to_jsonb(f) from reconcile.findings f
    cross join lateral (
      select v.content from reconcile.finding_versions v
      where v.finding = f.id order by v.recorded_at desc, v.id desc limit 1
    ) last
    where f.state <> 'healed' and f.object_at is not null and last.content->>'object_at' is null
    order by f.id;
  `);
}

/** What is known of a finding stays known; only the class goes back to its former name. */
export async function down(db: Knex): Promise<void> {
  await db.raw(`
    update reconcile.findings f
    set class = 'mismatch', key = format('mismatch:%s:%s', f.resource, f.object_id)
    where f.class = 'edited_row' and not exists (
      select from reconcile.findings other where other.key = format('mismatch:%s:%s', f.resource, f.object_id));
  `);
}
