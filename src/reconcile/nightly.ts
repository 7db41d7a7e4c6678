import type { Knex } from "knex";
import { dayText, localTimeIn, timeText } from "../platform/local-time.ts";
import { isUnfinished } from "./runs.ts";

/**
 * The key of a night's run: the minute at which it was due, as the deployment's clocks show it. Not when it begins,
 * which may be on the next day; and a minute that daylight saving repeats is one. Pure.
 */
export function nightlyKey(due: Date, timeZone: string): string {
  const local = localTimeIn(timeZone)(due);
  return `nightly:${dayText(local)}T${timeText(local)}`;
}

/** The key of the newest night, where its run was interrupted, or is at work; null where it was not. */
export async function interruptedNight(db: Knex): Promise<string | null> {
  const row = await db("reconcile.runs as r")
    .where("r.kind", "nightly")
    .orderBy("r.id", "desc")
    .first<{ run_key: string; is_interrupted: boolean } | undefined>(
      "r.run_key",
      db.raw(`r.state <> 'abandoned' and ${isUnfinished("r")} as is_interrupted`),
    );
  return row?.is_interrupted === true ? row.run_key : null;
}
