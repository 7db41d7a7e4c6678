import type { Knex } from "knex";
import type { Log } from "../platform/log.ts";
import { errorCode } from "../platform/postgres/errors.ts";
import { inTransaction } from "../platform/postgres/transactions.ts";

const dayMs = 86_400_000;
const weekMs = 7 * dayMs;

/** A span of numbers: one partition of `inbox.receipts` and one of `inbox.progress`. */
export interface Span {
  /** The number in the partitions' names: their first one, 0 for what was there before partitions. */
  name: number;
  /** Inclusive; below all numbers for the first partition. */
  from: number;
  /** Exclusive. */
  to: number;
}

/** A week of events by their own time: one partition of `inbox.seen`. Monday, 00:00 UTC. */
export type Week = Date;

/** The least numbers of a partition, and how many weeks of events at the present rate one must hold. */
const leastNumbers = 10_000_000;
const weeksOfNumbers = 4;
const spansAhead = 2;
const weeksAhead = 4;
/** The next partition begins after a week, unless so few numbers are left that this one is full at once. */
const fewNumbers = 100_000;
/** However early events are dropped: how long a repeat is recognised for certain. */
export const leastKeepDays = 90;

export interface SpanFacts {
  /** In ascending order, without the default partition. */
  spans: readonly Span[];
  /** The highest number given out. */
  lastNumber: number;
  /** When the first event of the present partition arrived; null while it has none. */
  presentSince: Date | null;
}

export interface SpanPlan {
  create: Span[];
  /** The numbers go on here, though the present partition is not full. */
  jumpTo: number | null;
}

/**
 * Which partitions of numbers to make, and whether to go on to the next one: after a week, or where the present numbers
 * have none. It must be there already: numbers go on at once, while a new partition shows when it is committed. Pure.
 */
export function planSpans({ spans, lastNumber, presentSince }: SpanFacts, now: Date): SpanPlan {
  const present = spans.find(({ from, to }) => from <= lastNumber && lastNumber < to);
  const ageMs = presentSince === null ? 0 : now.getTime() - presentSince.getTime();
  const used = present === undefined ? 0 : lastNumber - Math.max(present.from, 1);
  const perWeek = ageMs > dayMs / 24 ? (used / ageMs) * weekMs : 0;
  const size = Math.max(leastNumbers, roundUp(perWeek * weeksOfNumbers, leastNumbers));
  const create: Span[] = [];
  const isFirst = spans.length === 0 && lastNumber === 0;
  let end = isFirst ? 1 : Math.max(spans.at(-1)?.to ?? 1, roundUp(lastNumber + 1, leastNumbers));
  const ahead = spans.filter(({ from }) => from > lastNumber);
  for (let left = spansAhead - ahead.length; left > 0; left--) {
    create.push({ name: end, from: end, to: end + size });
    end += size;
  }
  const [next] = ahead;
  const isOver = ageMs >= weekMs || present === undefined;
  const isFar = next !== undefined && next.from - lastNumber > fewNumbers;
  return { create, jumpTo: isOver && isFar ? next.from : null };
}

const roundUp = (value: number, step: number): number => Math.ceil(value / step) * step;

export interface WeekPlan {
  create: Week[];
  drop: Week[];
}

/** Which weeks of the memory against repeats to make and to drop. Pure. */
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

/** What `keepPartitions` did, as names of partitions. */
export interface PartitionChanges {
  created: string[];
  dropped: string[];
  /** Rows removed from partitions that could not be dropped whole. */
  removedRows: number;
}

export interface Retention {
  /** Events are dropped so many days after they arrived. */
  keepDays: number;
  /** That of the database, which dates arrivals. */
  now: Date;
}

/**
 * Makes partitions ahead, goes on to the next one every week, and drops those whose events are all older than
 * `keepDays`. Events that are not settled, and dead ones, are never dropped. Waits half a second for a lock, so that
 * receivers do not wait for long behind it; what it did not get is done the next time. Idempotent; may run at once in
 * several workers. Opens its own transactions.
 */
export async function keepPartitions(
  { db, log }: { db: Knex; log: Log },
  { keepDays, now }: Retention,
): Promise<PartitionChanges> {
  const oldest = new Date(now.getTime() - keepDays * dayMs);
  const changes: PartitionChanges = { created: [], dropped: [], removedRows: 0 };
  const attempt = async (step: (trx: Knex.Transaction) => Promise<void>): Promise<void> => {
    try {
      await inTransaction(db, async (trx) => {
        await trx.raw("set local lock_timeout = '500ms'");
        await trx.raw("select pg_advisory_xact_lock(?)", [partitionLock]);
        await step(trx);
      });
    } catch (err) {
      if (errorCode(err) !== "55P03") throw err;
      log.info({ err }, "partitions of the inbox are changed later: somebody else reads them");
    }
  };
  await attempt((trx) => advanceNumbers(trx, now, changes));
  const { create, drop } = planWeeks(await readWeeks(db), now, keepDays);
  for (const week of create) await attempt((trx) => createWeek(trx, week, changes));
  for (const span of await readSpans(db)) {
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

/** Held by the one process that changes partitions. An arbitrary fixed number. */
const partitionLock = 7_255_011_937;

async function advanceNumbers(
  trx: Knex.Transaction,
  now: Date,
  changes: PartitionChanges,
): Promise<void> {
  const spans = await readSpans(trx);
  const lastNumber = await readLastNumber(trx);
  const present = spans.find(({ from, to }) => from <= lastNumber && lastNumber < to);
  const presentSince = present === undefined ? null : await arrivedAt(trx, present, "first");
  const { create, jumpTo } = planSpans({ spans, lastNumber, presentSince }, now);
  for (const { name, from, to } of create) {
    // Attached and not created in place: that would lock out all readers and writers of the other partitions.
    await trx.raw(
      `create table inbox.receipts_${name} (like inbox.receipts including defaults including storage);
       create table inbox.progress_${name} (like inbox.progress including defaults including constraints)
         with (autovacuum_vacuum_scale_factor = 0.05);
       alter table inbox.receipts attach partition inbox.receipts_${name} for values from (${from}) to (${to});
       alter table inbox.progress attach partition inbox.progress_${name} for values from (${from}) to (${to});
       create index receipts_${name}_event_id on inbox.receipts_${name} (event_id)`,
    );
    changes.created.push(`receipts_${name}`, `progress_${name}`);
  }
  if (jumpTo === null) return;
  // This process may have been stopped since it read the number: it must not give out any twice.
  await trx.raw(
    "select setval('inbox.event_numbers', ?, false) from inbox.event_numbers where last_value < ?",
    [jumpTo, jumpTo - fewNumbers],
  );
}

/** The highest number given out; 0 before the first. One statement. */
async function readLastNumber(db: Knex): Promise<number> {
  const { rows } = await db.raw<{ rows: { last: string }[] }>(
    "select case when is_called then last_value else last_value - 1 end as last from inbox.event_numbers",
  );
  return Number(rows[0]?.last ?? 0);
}

/** When the first or the last event of a span arrived; null where it has none. */
async function arrivedAt(db: Knex, span: Span, which: "first" | "last"): Promise<Date | null> {
  const row = await db(`inbox.receipts_${span.name}`)
    .orderBy("seq", which === "first" ? "asc" : "desc")
    .first<{ received_at: Date } | undefined>("received_at");
  return row?.received_at ?? null;
}

/** The numbers of the spans, ascending. One statement. */
async function readSpans(db: Knex): Promise<Span[]> {
  const { rows } = await db.raw<{ rows: { name: string; bound: string }[] }>(
    `select c.relname as name, pg_get_expr(c.relpartbound, c.oid) as bound
     from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'inbox.receipts'::regclass`,
  );
  return rows
    .flatMap(({ name, bound }) => {
      const [, from, to] = /FROM \((MINVALUE|'\d+')\) TO \('(\d+)'\)/.exec(bound) ?? [];
      if (from === undefined || to === undefined) return [];
      return [
        {
          name: Number(name.slice("receipts_".length)),
          from: from === "MINVALUE" ? Number.NEGATIVE_INFINITY : Number(from.slice(1, -1)),
          to: Number(to),
        },
      ];
    })
    .sort((a, b) => a.from - b.from);
}

/**
 * The first number of the partition before the one of this number: a week of events lies between the two at least,
 * unless the inbox is younger. No number of events can be subtracted from a number instead, since numbers jump. One
 * statement.
 */
export async function firstNumberOfPrevious(db: Knex, seq: number): Promise<number> {
  const spans = await readSpans(db);
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

const weekName = (week: Week): string =>
  `seen_${week.toISOString().slice(0, 10).replaceAll("-", "_")}`;

/** Takes over what is there already of that week: a service's clock may run ahead. */
async function createWeek(
  trx: Knex.Transaction,
  week: Week,
  changes: PartitionChanges,
): Promise<void> {
  const name = weekName(week);
  if (await hasWeek(trx, week)) return;
  const [from, to] = [week.toISOString(), new Date(week.getTime() + weekMs).toISOString()];
  await trx.raw(
    `lock table inbox.seen_default in access exclusive mode;
     create table inbox.${name} (like inbox.seen including defaults including constraints);
     with early as (
       delete from inbox.seen_default where created_at >= '${from}' and created_at < '${to}' returning *
     )
     insert into inbox.${name} select * from early;
     alter table inbox.seen attach partition inbox.${name} for values from ('${from}') to ('${to}')`,
  );
  changes.created.push(name);
}

async function dropWeek(
  trx: Knex.Transaction,
  week: Week,
  changes: PartitionChanges,
): Promise<void> {
  if (!(await hasWeek(trx, week))) return;
  await trx.raw(`drop table inbox.${weekName(week)}`);
  changes.dropped.push(weekName(week));
}

const hasWeek = async (trx: Knex.Transaction, week: Week): Promise<boolean> =>
  (await readWeeks(trx)).some((other) => other.getTime() === week.getTime());

/** Whether the numbers have gone on to a later span, and its last event arrived too long ago. */
async function isOld(db: Knex, span: Span, oldest: Date): Promise<boolean> {
  if ((await readLastNumber(db)) + 1 < span.to) return false;
  const last = await arrivedAt(db, span, "last");
  return last === null || last < oldest;
}

const removedAtOnce = 50_000;

/** Drops a span that is old. Where something in it is not settled, only what is settled goes. */
async function dropSpan(
  trx: Knex.Transaction,
  span: Span,
  oldest: Date,
  changes: PartitionChanges,
): Promise<void> {
  const isThere = (await readSpans(trx)).some(({ name }) => name === span.name);
  if (!isThere || !(await isOld(trx, span, oldest))) return;
  // Waits for who is about to replay an event of it, or to store one.
  await trx.raw(`lock table inbox.progress_${span.name} in share mode`);
  if (!(await isOld(trx, span, oldest))) return;
  const last = await arrivedAt(trx, span, "last");
  if (last !== null) await noteDropped(trx, last);
  const { rows } = await trx.raw<{ rows: unknown[] }>(
    `select from inbox.progress_${span.name} where state in ('received', 'failed', 'dead') limit 1`,
  );
  if (rows.length > 0) {
    changes.removedRows += await removeSettled(trx, span.name, oldest);
    return;
  }
  await trx.raw(`drop table inbox.receipts_${span.name}, inbox.progress_${span.name}`);
  changes.dropped.push(`receipts_${span.name}`, `progress_${span.name}`);
}

/** Removes old events from the default partition, which is never dropped. */
async function thinOverflow(
  trx: Knex.Transaction,
  oldest: Date,
  changes: PartitionChanges,
): Promise<void> {
  const first = await trx("inbox.receipts_default").where("received_at", "<", oldest).first("seq");
  if (first === undefined) return;
  await noteDropped(trx, oldest);
  changes.removedRows += await removeSettled(trx, "default", oldest);
}

/** Removes settled events that arrived before `oldest` from a partition of numbers, and returns how many. */
async function removeSettled(
  trx: Knex.Transaction,
  name: Span["name"] | "default",
  oldest: Date,
): Promise<number> {
  const { rowCount } = await trx.raw<{ rowCount: number }>(
    `with settled as (
       delete from inbox.progress_${name} where seq in (
         select seq from inbox.progress_${name} p join inbox.receipts_${name} r using (seq)
         where p.state in ('applied', 'stale', 'ignored') and r.received_at < ?
         limit ? for update of p skip locked)
       returning seq
     )
     delete from inbox.receipts_${name} r using settled s where r.seq = s.seq`,
    [oldest, removedAtOnce],
  );
  return rowCount;
}

/** Keeps what is asked of events that are dropped: when the first arrived, and until when they are gone. */
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
  for (const span of await readSpans(trx)) {
    if (await isOld(trx, span, oldest)) continue;
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

/** Whether partitions are there for what arrives next. */
export interface PartitionHealth {
  /** Partitions of numbers after the present one. */
  spansAhead: number;
  /** Weeks of the memory against repeats after this one. */
  weeksAhead: number;
  /** The next event has no partition of its own, and will lie in the default one. */
  isOverflowing: boolean;
}

/** Reads it. Three statements. */
export async function readPartitionHealth(db: Knex, now: Date): Promise<PartitionHealth> {
  const last = await readLastNumber(db);
  const spans = await readSpans(db);
  const weeks = await readWeeks(db);
  return {
    spansAhead: spans.filter(({ from }) => from > last).length,
    weeksAhead: weeks.filter((week) => week.getTime() > now.getTime()).length,
    isOverflowing: !spans.some(({ from, to }) => from <= last + 1 && last + 1 < to),
  };
}
