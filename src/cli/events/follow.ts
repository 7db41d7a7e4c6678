import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";
import { watchArrivals } from "../../inbox/arrivals.ts";
import { listEvents, listEventsOf } from "../../inbox/queries.ts";
import type { EventFilter, EventRow } from "../../inbox/queries.ts";
import type { Clock } from "../../platform/clock.ts";
import { isOutage } from "../../platform/postgres-errors.ts";
import type { CliContext } from "../context.ts";

const lookEveryMs = 500;
/** Of events that may still come to match the newest so many are looked at. */
const maxUndecided = 20_000;

/**
 * Prints the newest events, oldest first, and then each that comes, as one line, until the signal. With a state or an
 * object in the filter an event is printed once it has that state or is known to be about that object, which a worker
 * finds out. A database that goes away is waited for; nothing is left out, since the inbox says what came meanwhile.
 */
export async function followEvents(
  { stdout, stderr }: Pick<CliContext, "stdout" | "stderr">,
  { db, clock }: { db: Knex; clock: Clock },
  filter: EventFilter,
  { lineOf, signal }: { lineOf: (row: EventRow) => string; signal: AbortSignal },
): Promise<void> {
  const print = (rows: readonly EventRow[]) =>
    new Promise<void>((resolve) => {
      // Taken, or refused by a reader that has seen enough; whoever does not read must not fill the memory.
      stdout.write(rows.map((row) => `${lineOf(row)}\n`).join(""), () => resolve());
    });
  const arrivals = await watchArrivals(db, clock);
  const newest = await listEvents(db, filter);
  await print(newest.filter(({ seq }) => arrivals.wasThere(seq)).reverse());
  let undecided: number[] = [];

  async function look(): Promise<{ rows: EventRow[]; more: boolean }> {
    const came = await arrivals.next();
    undecided = [...undecided, ...came].slice(-maxUndecided);
    const known = await listEventsOf(db, undecided);
    undecided = known
      .filter((row) => !matches(row, filter) && mayMatchLater(row, filter))
      .map(({ seq }) => seq);
    return { rows: known.filter((row) => matches(row, filter)), more: came.length > 0 };
  }

  const aborted = new Promise<null>((resolve) => {
    signal.addEventListener("abort", () => resolve(null), { once: true });
  });
  let isAway = false;
  while (!signal.aborted) {
    try {
      // A server that hangs, or a reader that does not read, holds up nobody who wants to end.
      const seen = await Promise.race([look(), aborted]);
      if (seen === null) return;
      if (isAway)
        stderr.write("tallyhook: the database answers again; what came meanwhile follows.\n");
      isAway = false;
      if (seen.rows.length > 0) await Promise.race([print(seen.rows), aborted]);
      if (seen.more) continue;
    } catch (error) {
      if (!isOutage(error)) throw error;
      if (!isAway) {
        stderr.write("tallyhook: the database does not answer; trying again until it does.\n");
      }
      isAway = true;
    }
    await sleep(lookEveryMs, undefined, { signal }).catch(() => {});
  }
}

const matches = (row: EventRow, { state, type, resourceId }: EventFilter): boolean =>
  (state === undefined || row.state === state) &&
  (type === undefined || row.type === type) &&
  (resourceId === undefined || row.resource_id === resourceId);

/** What a worker has not settled gets another state, and its object; its type stays. */
const mayMatchLater = (row: EventRow, { type }: EventFilter): boolean =>
  (type === undefined || row.type === type) && (row.state === "received" || row.state === "failed");
