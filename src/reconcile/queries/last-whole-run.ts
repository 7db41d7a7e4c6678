import type { Knex } from "knex";

/**
 * When the last run that answers for everything was started, by this machine's clock; null when none was. A run that
 * is at work or was interrupted counts: it is gone on with.
 */
export async function lastWholeRun(db: Knex): Promise<Date | null> {
  const row = await db("reconcile.runs")
    .whereIn("kind", ["nightly", "full", "import"])
    .whereNot("state", "abandoned")
    .first<{ started: Date | null }>(db.raw("max(started_at) as started"));
  return row.started;
}
