import type { Knex } from "knex";
import { sqlArray } from "../platform/sql-array.ts";
import type { ReceiverCounters } from "./counters.ts";

/** Adds up what was answered since the last time, by reason. */
export type CountAnswers = () => Map<string, number>;

/** Remembers how far the counters were counted; they themselves are only read. */
export function createAnswerCounts(counters: Readonly<ReceiverCounters>): CountAnswers {
  let before: Record<string, number> = {};
  return () => {
    const now: Record<string, number> = {
      ...counters.rejected,
      accepted: counters.accepted,
      duplicate: counters.duplicate,
    };
    const since = Object.entries(now).map(
      ([reason, n]) => [reason, n - (before[reason] ?? 0)] as const,
    );
    before = now;
    return new Map(since.filter(([, n]) => n > 0));
  };
}

/**
 * Adds answers to those of this minute, for all receivers together. One statement, and none where there was nothing: it
 * is called every few seconds, apart from the requests.
 */
export async function storeAnswers(db: Knex, answers: ReadonlyMap<string, number>): Promise<void> {
  if (answers.size === 0) return;
  await db.raw(
    `insert into receiver.answers_by_minute as a (minute, reason, times)
     select date_trunc('minute', now()), g.reason, g.times from unnest(?::text[], ?::bigint[]) as g(reason, times)
     order by g.reason on conflict (minute, reason) do update set times = a.times + excluded.times`,
    [sqlArray([...answers.keys()]), sqlArray([...answers.values()])],
  );
}
