import { createHash } from "node:crypto";
import type { Knex } from "knex";
import { sqlArray } from "../../platform/postgres/values.ts";
import type { EventState } from "./claim.ts";
import { type EventSearch, matchingSeqs, spanOf } from "./search-events.ts";

/** The most events that one replay puts back: a second's work, and a worker's for half a minute. */
export const mostReplayed = 10_000;

/** The number of events that a search for a replay covers; beyond it, the filter has to be narrower. */
const lookThrough = 500_000;

/** The events that a replay of all that a search finds would put back. */
export interface Replayable {
  /** Descending; the newest `mostReplayed` where there are more. */
  seqs: number[];
  isMore: boolean;
}

/** The events that match. As `searchEvents`, it takes no transaction. */
export async function findReplayable(db: Knex, search: EventSearch): Promise<Replayable> {
  const span = await spanOf(db, search);
  const found = await matchingSeqs(db, { search, span, limit: mostReplayed + 1, lookThrough });
  const seqs = found.slice(0, mostReplayed);
  return { seqs, isMore: found.length > mostReplayed };
}

/** The digest that a confirmation carries after a search's count was shown. */
export const decidedOnFound = (seqs: readonly number[]): string => digestOf(seqs.join());

/** The digest that a confirmation carries after these events were shown. */
export const decidedOnEvents = (events: readonly { seq: number; state: EventState; attempts: number }[]): string =>
  digestOf(events.map(({ seq, state, attempts }) => `${seq}:${state}:${attempts}`).join());

const digestOf = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 32);

/** How many of these events are in each state, the commonest first. One statement. */
export async function countStates(db: Knex, seqs: readonly number[]): Promise<{ state: EventState; n: number }[]> {
  const { rows } = await db.raw<{ rows: { state: EventState; n: string }[] }>(
    `select state, count(*) as n from inbox.progress where seq = any(?::bigint[])
     group by state order by n desc, state`,
    [sqlArray(seqs)],
  );
  return rows.map(({ state, n }) => ({ state, n: Number(n) }));
}
