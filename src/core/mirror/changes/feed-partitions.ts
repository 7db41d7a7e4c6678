import type { Knex } from "knex";
import type { Log } from "../../../platform/log.ts";
import {
  type NumberedTables,
  type PartitionChanges,
  type Span,
  type SpanHealth,
  advanceSpans,
  dropPartitions,
  isInSpan,
  isThereAndOld,
  partitionSteps,
  readSpanHealth,
  readSpans,
  skipLostNumbers,
} from "../../../platform/postgres/number-partitions.ts";
import { readableUntil } from "./read-changes.ts";

const dayMs = 86_400_000;

const feedTables: NumberedTables = {
  schema: "feed",
  sequence: "change_numbers",
  tables: ["changes"],
  dateColumn: "recorded_at",
  lock: 7_255_011_939,
};

export interface FeedRetention {
  /** Changes are dropped so many days after they were recorded. */
  keepDays: number;
  /** That of the database, which dates changes. */
  now: Date;
}

/**
 * Makes partitions of the feed ahead, moves to the next one every week, and drops those whose changes are all older
 * than `keepDays` and were read by every consumer. Changes in the default partition, which is never dropped, are
 * removed one by one. Idempotent; several workers may run it at the same time. Opens its own transactions
 * (`partitionSteps`).
 */
export async function keepFeed(
  { db, log }: { db: Knex; log: Log },
  { keepDays, now }: FeedRetention,
): Promise<PartitionChanges> {
  const oldest = new Date(now.getTime() - keepDays * dayMs);
  const changes: PartitionChanges = { created: [], dropped: [], removedRows: 0 };
  const attempt = partitionSteps({ db, log }, feedTables);
  await attempt(async (trx) => {
    changes.created.push(...(await advanceSpans(trx, feedTables, now)));
  });
  for (const span of await readSpans(db, feedTables)) {
    await attempt(async (trx) => {
      changes.dropped.push(...(await dropSpan(trx, span, oldest)));
    });
  }
  for (let more = true; more;) {
    more = false;
    await attempt(async (trx) => {
      const removed = await thinOverflow(trx, oldest);
      changes.removedRows += removed;
      more = removed === removedAtOnce;
    });
  }
  return changes;
}

const removedAtOnce = 50_000;

async function dropSpan(trx: Knex.Transaction, span: Span, oldest: Date): Promise<string[]> {
  if (!(await isThereAndOld(trx, feedTables, span, oldest))) return [];
  const { until, position } = await readByAll(trx);
  if (until < span.to - 1) return [];
  const unread = await trx("feed.changes").whereRaw(isInSpan("seq", span)).where("seq", ">", position).first("seq");
  return unread === undefined ? dropPartitions(trx, feedTables, span) : [];
}

/** Removes old changes from the default partition, and returns how many. */
async function thinOverflow(trx: Knex.Transaction, oldest: Date): Promise<number> {
  const { rowCount } = await trx.raw<{ rowCount: number }>(
    `delete from feed.changes_default where seq in (
       select seq from feed.changes_default where recorded_at < ? and seq <= ? order by seq limit ?)`,
    [oldest, (await readByAll(trx)).position, removedAtOnce],
  );
  return rowCount;
}

/** The number up to which the feed is complete, and that up to which every consumer has read it. */
async function readByAll(db: Knex): Promise<{ until: number; position: number }> {
  const until = await readableUntil(db);
  const { rows } = await db.raw<{ rows: [{ position: string | null }] }>(
    "select min(position) as position from feed.consumers",
  );
  const [{ position }] = rows;
  return { until, position: position === null ? until : Math.min(until, Number(position)) };
}

/** Moves the numbers of changes above those of a lost database (`skipLostNumbers`). Needs a transaction. */
export const skipLostChanges = (trx: Knex.Transaction, span: { since: Date; now: Date }): Promise<void> =>
  skipLostNumbers(trx, feedTables, span);

/** Whether partitions exist for the next changes. Two statements. */
export const readFeedHealth = (db: Knex): Promise<SpanHealth> => readSpanHealth(db, feedTables);
