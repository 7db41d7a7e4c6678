import type { Knex } from "knex";

/** The key of a night's run: the day on which it is due, in the deployment's time zone. Pure. */
export function nightlyKey(at: Date, timeZone: string): string {
  // The Swedish form of a date is the ISO one.
  const day = new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short" }).format(at);
  return `nightly:${day}`;
}

/** The key of the newest night, where its run was interrupted; null where it was not. */
export async function interruptedNight(db: Knex): Promise<string | null> {
  const row = await db("reconcile.runs as r")
    .where("r.kind", "nightly")
    .orderBy("r.id", "desc")
    .first<{ run_key: string; is_interrupted: boolean } | undefined>(
      "r.run_key",
      db.raw(
        `r.state <> 'abandoned' and exists (
           select from reconcile.coverage c where c.run = r.id and c.state = 'pending') as is_interrupted`,
      ),
    );
  return row?.is_interrupted === true ? row.run_key : null;
}
