import type { Knex } from "knex";
import type { Log } from "../../platform/log.ts";
import {
  type NumberedTables,
  type PartitionChanges,
  type Span,
  type SpanHealth,
  advanceSpans,
  dateIn,
  dropPartitions,
  isInSpan,
  isOld,
  isThereAndOld,
  partitionSteps,
  readSpanHealth,
  readSpans,
  skipLostNumbers,
} from "../../platform/postgres/number-partitions.ts";

const dayMs = 86_400_000;
const weekMs = 7 * dayMs;

/** A span is one partition of each. */
const inboxTables: NumberedTables = {
  schema: "inbox",
  sequence: "event_numbers",
  tables: ["receipts", "progress"],
  dateColumn: "received_at",
  lock: 7_255_011_937,
};

/** A week of events by their own time: one partition of `inbox.seen`. Monday, 00:00 UTC. */
export type Week = Date;

const weeksAhead = 4;
/** However early events are dropped: how long a repeat is recognised for certain. */
export const leastKeepDays = 90;

export interface WeekPlan {
  create: Week[];
  drop: Week[];
}

/** Plans which weekly partitions of the repeat memory to make and to drop. */
export function planWeeks(weeks: readonly Week[], now: Date, keepDays: number): WeekPlan {
  const there = new Set(weeks.map((week) => week.getTime()));
  const thisWeek = mondayOf(now).getTime();
  const wanted = Array.from({ length: weeksAhead + 1 }, (_, n) => thisWeek + n * weekMs);
  const forgottenMs = now.getTime() - Math.max(keepDays, leastKeepDays) * dayMs;
  return {
    create: wanted.filter((week) => !there.has(week)).map((week) => new Date(week)),
    drop: weeks.filter((week) => week.getTime() + weekMs <= forgottenMs),
  };
}

/** The Monday on or before that time, in UTC. 1970-01-05 was one. */
function mondayOf(time: Date): Week {
  const monday = 4 * dayMs;
  return new Date(Math.floor((time.getTime() - monday) / weekMs) * weekMs + monday);
}

export interface Retention {
  /** Events are dropped so many days after they arrived. */
  keepDays: number;
  /** That of the database, which dates arrivals. */
  now: Date;
}

/**
 * Makes partitions ahead, moves to the next one every week, and drops those whose events are all older than `keepDays`.
 * Events that are not settled, and dead ones, are never dropped. Idempotent; several workers may run it at the same
 * time. Opens its own transactions (`partitionSteps`).
 */
export async function keepPartitions(
  { db, log }: { db: Knex; log: Log },
  { keepDays, now }: Retention,
): Promise<PartitionChanges> {
  const oldest = new Date(now.getTime() - keepDays * dayMs);
  const changes: PartitionChanges = { created: [], dropped: [], removedRows: 0 };
  const attempt = partitionSteps({ db, log }, inboxTables);
  await attempt(async (trx) => {
    changes.created.push(...(await advanceSpans(trx, inboxTables, now)));
  });
  const { create, drop } = planWeeks(await readWeeks(db), now, keepDays);
  for (const week of create) await attempt((trx) => createWeek(trx, week, changes));
  for (const span of await readSpans(db, inboxTables)) {
    await attempt((trx) => dropSpan(trx, span, oldest, changes));
  }
  await attempt((trx) => thinOverflow(trx, oldest, changes));
  for (const week of drop) {
    await attempt((trx) => dropWeek(trx, week, changes));
  }
  for (let more = true; more;) {
    more = false;
    await attempt(async (trx) => {
      const forgotten = await forgetDropped(trx, oldest);
      changes.removedRows += forgotten;
      more = forgotten === removedAtOnce;
    });
  }
  return changes;
}

/**
 * The first number of the partition before the one of this number: a week of events lies between the two at least,
 * unless the inbox is younger. No number of events can be subtracted from a number instead, since numbers jump. One
 * statement.
 */
export async function firstNumberOfPrevious(db: Knex, seq: number): Promise<number> {
  const spans = await readSpans(db, inboxTables);
  const own = spans.findLastIndex(({ from }) => from <= seq);
  return Math.max(spans[own - 1]?.from ?? 0, 0);
}

async function readWeeks(db: Knex): Promise<Week[]> {
  const { rows } = await db.raw<{ rows: { name: string }[] }>(
    `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'inbox.seen'::regclass order by 1`,
  );
  return rows.flatMap(({ name }) => {
    const [, year, month, day] = /^seen_(\d{4})_(\d\d)_(\d\d)$/.exec(name) ?? [];
    return day === undefined ? [] : [new Date(`${year}-${month}-${day}T00:00:00Z`)];
  });
}

const mondayName = (week: Week): string => week.toISOString().slice(0, 10);
const weekName = (week: Week): string => `seen_${mondayName(week).replaceAll("-", "_")}`;

async function createWeek(trx: Knex.Transaction, week: Week, changes: PartitionChanges): Promise<void> {
  if (await hasWeek(trx, week)) return;
  await trx.raw("select inbox.make_week(?)", [mondayName(week)]);
  changes.created.push(weekName(week));
}

async function dropWeek(trx: Knex.Transaction, week: Week, changes: PartitionChanges): Promise<void> {
  if (!(await hasWeek(trx, week))) return;
  await trx.raw("select inbox.drop_week(?)", [mondayName(week)]);
  changes.dropped.push(weekName(week));
}

const hasWeek = async (trx: Knex.Transaction, week: Week): Promise<boolean> =>
  (await readWeeks(trx)).some((other) => other.getTime() === week.getTime());

const removedAtOnce = 50_000;

/** Drops a span that is old. Where it holds unsettled events, drops only the settled ones. */
async function dropSpan(trx: Knex.Transaction, span: Span, oldest: Date, changes: PartitionChanges): Promise<void> {
  if (!(await isThereAndOld(trx, inboxTables, span, oldest))) return;
  await trx.raw("select inbox.hold_partition(?)", [span.name]);
  if (!(await isOld(trx, inboxTables, span, oldest))) return;
  const last = await dateIn(trx, inboxTables, span, "last");
  if (last !== null) await noteDropped(trx, last);
  const { rows } = await trx.raw<{ rows: unknown[] }>(
    `select from inbox.progress
     where ${isInSpan("seq", span)} and state in ('received', 'failed', 'dead') limit 1`,
  );
  if (rows.length > 0) {
    changes.removedRows += await removeSettled(trx, placeOf(span), oldest);
    return;
  }
  changes.dropped.push(...(await dropPartitions(trx, inboxTables, span)));
}

/** Removes old events from the default partition, which is never dropped. */
async function thinOverflow(trx: Knex.Transaction, oldest: Date, changes: PartitionChanges): Promise<void> {
  const first = await trx("inbox.receipts_default").where("received_at", "<", oldest).first("seq");
  if (first === undefined) return;
  await noteDropped(trx, oldest);
  changes.removedRows += await removeSettled(trx, overflow, oldest);
}

/** A set of events' locations: two tables, and a condition on a number of each. */
interface Place {
  progress: string;
  receipts: string;
  holds(column: string): string;
}

const overflow: Place = {
  progress: "inbox.progress_default",
  receipts: "inbox.receipts_default",
  holds: () => "true",
};

const placeOf = (span: Span): Place => ({
  progress: "inbox.progress",
  receipts: "inbox.receipts",
  holds: (column) => isInSpan(column, span),
});

/** Removes settled events that arrived before `oldest` from a place, and returns how many. */
async function removeSettled(
  trx: Knex.Transaction,
  { progress, receipts, holds }: Place,
  oldest: Date,
): Promise<number> {
  const { rowCount } = await trx.raw<{ rowCount: number }>(
    `with settled as (
       delete from ${progress} where ${holds("seq")} and seq in (
         select p.seq from ${progress} p join ${receipts} r on r.seq = p.seq
         where ${holds("p.seq")} and ${holds("r.seq")}
           and p.state in ('applied', 'stale', 'ignored') and r.received_at < ?
         limit ? for update of p skip locked)
       returning seq
     )
     delete from ${receipts} r using settled s where r.seq = s.seq and ${holds("r.seq")}`,
    [oldest, removedAtOnce],
  );
  return rowCount;
}

/** Keeps the facts about dropped events that are still needed: when the first arrived, and until when they are gone. */
async function noteDropped(trx: Knex.Transaction, until: Date): Promise<void> {
  await trx.raw(
    `insert into inbox.dropped (first_event_at, until)
     select coalesce(event_created_at, received_at), ? from inbox.receipts order by seq limit 1
     on conflict (only_one) do update set until = greatest(inbox.dropped.until, excluded.until)`,
    [until],
  );
}

/**
 * Removes from the default partition of `inbox.seen` (events without a time, or dated far off) what belongs to events
 * that were dropped, or removed from a partition that stays for a dead one. Returns the number of rows.
 */
async function forgetDropped(trx: Knex.Transaction, oldest: Date): Promise<number> {
  let keptFrom: number | null = null;
  for (const span of await readSpans(trx, inboxTables)) {
    if (await isOld(trx, inboxTables, span, oldest)) continue;
    keptFrom = span.from;
    break;
  }
  if (keptFrom === null || !Number.isFinite(keptFrom)) return 0;
  // Two statements: see lockProgress in retention.ts.
  const { rows } = await trx.raw<{ rows: { times: string | null; bodies: string | null }[] }>(
    `select array_agg(created_at)::text as times, array_agg(body)::text as bodies from (
       select created_at, body from inbox.seen_default s
       where s.seq < :keptFrom and not exists (
         select from inbox.receipts r where r.seq = s.seq and r.seq < :keptFrom)
       order by s.seq limit :removedAtOnce) gone`,
    { keptFrom, removedAtOnce },
  );
  const { times = null, bodies = null } = rows[0] ?? {};
  if (times === null || bodies === null) return 0;
  const { rowCount } = await trx.raw<{ rowCount: number }>(
    `delete from inbox.seen_default s using unnest(?::timestamptz[], ?::uuid[]) as gone(created_at, body)
     where s.created_at = gone.created_at and s.body = gone.body`,
    [times, bodies],
  );
  return rowCount;
}

/** Whether partitions exist for the next arrivals. */
export interface PartitionHealth extends SpanHealth {
  /** Weeks of the memory against repeats after this one. */
  weeksAhead: number;
}

/** Three statements. */
export async function readPartitionHealth(db: Knex, now: Date): Promise<PartitionHealth> {
  const weeks = await readWeeks(db);
  return {
    ...(await readSpanHealth(db, inboxTables)),
    weeksAhead: weeks.filter((week) => week.getTime() > now.getTime()).length,
  };
}

/** Moves the numbers of events above those of a lost database (`skipLostNumbers`). Needs a transaction. */
export const skipLostEvents = (trx: Knex.Transaction, span: { since: Date; now: Date }): Promise<void> =>
  skipLostNumbers(trx, inboxTables, span);
