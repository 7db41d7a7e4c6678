import type { Knex } from "knex";
import { UsageError } from "../platform/errors.ts";

/**
 * `recorded_at` is taken when a row is written, and a writer is cut off after 30 s (mirror/writer-limits.ts): what was
 * recorded by a minute ago can no longer grow, so that a repeat gives the same bytes.
 */
export const settledAfterSeconds = 60;

/** The latest time that can be answered as of, by the database's clock. One statement. */
export async function latestAsOf(db: Knex): Promise<Date> {
  const { rows } = await db.raw<{ rows: { at: Date }[] }>(
    `select date_trunc('milliseconds', clock_timestamp() - make_interval(secs => ?)) as at`,
    [settledAfterSeconds],
  );
  const [row] = rows;
  if (row === undefined) throw new Error("the database did not tell the time");
  return row.at;
}

/** Throws `UsageError` where the history of that time may still grow. */
export async function assertSettled(db: Knex, asOf: Date): Promise<void> {
  const latest = await latestAsOf(db);
  if (asOf <= latest) return;
  throw new UsageError(
    `--as-of ${asOf.toISOString()} is later than a minute ago: what was recorded by then may not be all there yet. ` +
      `The latest possible is ${latest.toISOString()}; without --as-of the report tells what the mirror says now.`,
  );
}
