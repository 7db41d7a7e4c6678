import type { Knex } from "knex";
import type { Log } from "../log.ts";
import { errorCode } from "./errors.ts";
import { type TransactionLimits, inTransaction, limitTransaction } from "./transactions.ts";

const dayMs = 86_400_000;
const weekMs = 7 * dayMs;

/**
 * Tables in partitions by the numbers of one sequence. All of them have the same spans, and a default partition. The
 * schema has functions that make and drop the partitions of a span with the rights of the tables' owner:
 * `make_partitions(from, to)` and `drop_partitions(name)`.
 */
export interface NumberedTables {
  schema: string;
  sequence: string;
  /** The dates of the first table date the numbers. */
  tables: readonly [string, ...string[]];
  /** A column of the first table. */
  dateColumn: string;
  /** Held by the one process that changes their partitions. An arbitrary fixed number of their own. */
  lock: number;
}

/** A span of numbers: one partition of each of the tables. */
export interface Span {
  /** The number in the partitions' names: their first one, 0 for rows from before partitions. */
  name: number;
  /** Inclusive; below all numbers for the first partition. */
  from: number;
  /** Exclusive. */
  to: number;
}

/** The least numbers of a partition, and how many weeks at the present rate one must hold. */
const leastNumbers = 10_000_000;
const weeksOfNumbers = 4;
const spansAhead = 2;
/** The next partition begins after a week, unless so few numbers are left that this one is full immediately. */
const fewNumbers = 100_000;

export interface SpanFacts {
  /** In ascending order, without the default partition. */
  spans: readonly Span[];
  /** The highest number given out. */
  lastNumber: number;
  /** The date of the first row of the present partition; null while it has none. */
  presentSince: Date | null;
}

export interface SpanPlan {
  create: Span[];
  /** The numbers continue here, though the present partition is not full. */
  jumpTo: number | null;
}

/**
 * Plans which partitions of numbers to make, and whether to move to the next one: after a week, or where the present
 * numbers have none. The next one must exist already: numbers move immediately, while a new partition is visible only
 * after its commit.
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

/** Names of the partitions that were made and dropped. */
export interface PartitionChanges {
  created: string[];
  dropped: string[];
  /** Rows removed from partitions that could not be dropped whole. */
  removedRows: number;
}

/** A step of the upkeep, in a transaction of its own. */
type Step = (trx: Knex.Transaction) => Promise<void>;

/** One step may move many rows. A process that is stopped in it leaves the turn to the others after ten minutes. */
const stepLimits: TransactionLimits = {
  statementMs: 600_000,
  lockMs: 500,
  transactionMs: 600_000,
};

/**
 * Runs steps that change partitions, one process at a time. Each waits half a second for a lock, so that readers and
 * writers do not wait for long behind it; a step without its lock is done the next time.
 */
export function partitionSteps(
  { db, log }: { db: Knex; log: Log },
  { schema, lock }: NumberedTables,
): (step: Step) => Promise<void> {
  return async (step) => {
    try {
      await inTransaction(db, async (trx) => {
        await limitTransaction(trx, stepLimits);
        await trx.raw("select pg_advisory_xact_lock(?)", [lock]);
        await step(trx);
      });
    } catch (err) {
      if (errorCode(err) !== "55P03") throw err;
      log.info({ err, schema }, "partitions are changed later: another session uses them");
    }
  };
}

/** Makes partitions ahead and moves to the next one every week (`planSpans`). A step. Returns the new names. */
export async function advanceSpans(trx: Knex.Transaction, numbered: NumberedTables, now: Date): Promise<string[]> {
  const { schema, sequence } = numbered;
  const spans = await readSpans(trx, numbered);
  const lastNumber = await readLastNumber(trx, numbered);
  const present = spans.find(({ from, to }) => from <= lastNumber && lastNumber < to);
  const presentSince = present === undefined ? null : await dateIn(trx, numbered, present, "first");
  const { create, jumpTo } = planSpans({ spans, lastNumber, presentSince }, now);
  const created: string[] = [];
  for (const span of create) {
    await trx.raw(`select ${schema}.make_partitions(?, ?)`, [span.from, span.to]);
    created.push(...partitionsOf(numbered, span));
  }
  if (jumpTo !== null) {
    // This process may have been stopped since it read the number: it must not give out any twice.
    await trx.raw(`select setval('${schema}.${sequence}', ?) from ${schema}.${sequence} where last_value < ?`, [
      jumpTo - 1,
      jumpTo - fewNumbers,
    ]);
  }
  return created;
}

/**
 * Moves to a new partition, above every number that a lost database may have given out since then, so that no number
 * has two meanings: a consumer that kept a number waits for a higher one. Such a database moved to the next partition
 * each week. Needs a transaction, while no session takes numbers.
 */
export async function skipLostNumbers(
  trx: Knex.Transaction,
  numbered: NumberedTables,
  { since, now }: { since: Date; now: Date },
): Promise<void> {
  const spans = await readSpans(trx, numbered);
  const sizes = spans.map(({ from, to }) => to - Math.max(from, 0));
  const weeks = Math.ceil(Math.max(0, now.getTime() - since.getTime()) / weekMs);
  const end = Math.max(await readLastNumber(trx, numbered), spans.at(-1)?.to ?? 0);
  const first = roundUp(end + (weeks + 1) * Math.max(leastNumbers, ...sizes), leastNumbers);
  await trx.raw(`select setval('${numbered.schema}.${numbered.sequence}', ?)`, [first - 1]);
  await advanceSpans(trx, numbered, now);
}

/** The names of a span's partitions. */
const partitionsOf = ({ tables }: NumberedTables, span: Span): string[] =>
  tables.map((table) => `${table}_${span.name}`);

/** Drops a span's partitions, and returns their names. Part of a step. */
export async function dropPartitions(trx: Knex.Transaction, numbered: NumberedTables, span: Span): Promise<string[]> {
  await trx.raw(`select ${numbered.schema}.drop_partitions(?)`, [span.name]);
  return partitionsOf(numbered, span);
}

/** The highest number given out; 0 before the first. One statement. */
async function readLastNumber(db: Knex, { schema, sequence }: NumberedTables): Promise<number> {
  const { rows } = await db.raw<{ rows: { last: string }[] }>(
    `select case when is_called then last_value else last_value - 1 end as last from ${schema}.${sequence}`,
  );
  return Number(rows[0]?.last ?? 0);
}

/**
 * SQL of the condition that a number is in a span. A role that reads a partition by it, and not by its name, needs only
 * the right on the table. State it for each table of a join: PostgreSQL does not infer it.
 */
export const isInSpan = (column: string, { from, to }: Span): string =>
  Number.isFinite(from) ? `${column} >= ${from} and ${column} < ${to}` : `${column} < ${to}`;

/** The date of the first or the last row of a span; null where it has none. */
export async function dateIn(
  db: Knex,
  { schema, tables: [table], dateColumn }: NumberedTables,
  span: Span,
  which: "first" | "last",
): Promise<Date | null> {
  const row = await db(`${schema}.${table}`)
    .whereRaw(isInSpan("seq", span))
    .orderBy("seq", which === "first" ? "asc" : "desc")
    .first<{ at: Date } | undefined>(`${dateColumn} as at`);
  return row?.at ?? null;
}

/** The numbers of the spans, ascending. One statement. */
export async function readSpans(db: Knex, { schema, tables: [table] }: NumberedTables): Promise<Span[]> {
  const { rows } = await db.raw<{ rows: { name: string; bound: string }[] }>(
    `select c.relname as name, pg_get_expr(c.relpartbound, c.oid) as bound
     from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = '${schema}.${table}'::regclass`,
  );
  return rows
    .flatMap(({ name, bound }) => {
      const [, from, to] = /FROM \((MINVALUE|'\d+')\) TO \('(\d+)'\)/.exec(bound) ?? [];
      if (from === undefined || to === undefined) return [];
      return [
        {
          name: Number(name.slice(table.length + 1)),
          from: from === "MINVALUE" ? Number.NEGATIVE_INFINITY : Number(from.slice(1, -1)),
          to: Number(to),
        },
      ];
    })
    .sort((a, b) => a.from - b.from);
}

/** Whether the numbers have moved to a later span, and the span's last row is dated before `oldest`. */
export async function isOld(db: Knex, numbered: NumberedTables, span: Span, oldest: Date): Promise<boolean> {
  if ((await readLastNumber(db, numbered)) + 1 < span.to) return false;
  const last = await dateIn(db, numbered, span, "last");
  return last === null || last < oldest;
}

/** Whether a span is still there and old: another process may have dropped it. Part of a step. */
export async function isThereAndOld(
  trx: Knex.Transaction,
  numbered: NumberedTables,
  span: Span,
  oldest: Date,
): Promise<boolean> {
  const isThere = (await readSpans(trx, numbered)).some(({ name }) => name === span.name);
  return isThere && (await isOld(trx, numbered, span, oldest));
}

/** Whether partitions exist for the next numbers. */
export interface SpanHealth {
  /** Partitions after the present one. */
  spansAhead: number;
  /** The next number has no partition of its own, and its row will lie in the default one. */
  isOverflowing: boolean;
}

/** Two statements. */
export async function readSpanHealth(db: Knex, numbered: NumberedTables): Promise<SpanHealth> {
  const last = await readLastNumber(db, numbered);
  const spans = await readSpans(db, numbered);
  return {
    spansAhead: spans.filter(({ from }) => from > last).length,
    isOverflowing: !spans.some(({ from, to }) => from <= last + 1 && last + 1 < to),
  };
}
