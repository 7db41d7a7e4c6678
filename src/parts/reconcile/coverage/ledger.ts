import type { Knex } from "knex";
import { canonicalTimestamp } from "../../../core/contract/timestamp.ts";
import type { WireObject } from "../../../core/contract/wire-types.ts";
import type { Resource } from "../../../core/mirror/snapshot.ts";
import { sqlArray } from "../../../platform/postgres/values.ts";
import { boundText } from "./slice.ts";
import type { Slice } from "./slice.ts";

export type ObjectClass =
  | "equal"
  | "filled"
  | "settled"
  | "imported"
  | "overtaken"
  | "doubtful"
  | "missing_here"
  | "behind"
  | "mismatch"
  | "unreadable";

/** Number of objects of a slice by classification. */
export type Tally = Partial<Record<ObjectClass, number>>;

/** The position of a walk: the cursor of the next page, and where the last one ended. */
export interface Checkpoint {
  /** Null before the first page. */
  cursor: string | null;
  /** `created_at` of the last object shown, and the ids of the objects shown that share it. */
  boundary: string | null;
  boundaryIds: string[];
}

const beforeFirstPage: Checkpoint = { cursor: null, boundary: null, boundaryIds: [] };

/** A slice of a run with its progress. */
export interface LedgerSlice extends Slice {
  run: number;
  number: number;
  checkpoint: Checkpoint;
  pages: number;
  rows: number;
  tally: Tally;
  readAt: Date | null;
}

interface SliceRow {
  run: string;
  slice: number;
  step: string;
  resource: Resource;
  path: `/${string}`;
  filter: Record<string, string>;
  direction: Slice["direction"];
  created_from: Date | null;
  created_before: Date | null;
  is_closed: boolean;
  closes_cycle: boolean;
  reason: string;
  checkpoint: Checkpoint | null;
  pages: number;
  rows: string;
  read_at: Date | null;
  tally: Tally;
}

const toSlice = (row: SliceRow): LedgerSlice => ({
  run: Number(row.run),
  number: row.slice,
  step: row.step,
  resource: row.resource,
  path: row.path,
  filter: row.filter,
  direction: row.direction,
  createdFrom: row.created_from === null ? null : boundText(row.created_from),
  createdBefore: row.created_before === null ? null : boundText(row.created_before),
  isClosed: row.is_closed,
  closesCycle: row.closes_cycle,
  reason: row.reason,
  checkpoint: row.checkpoint ?? beforeFirstPage,
  pages: row.pages,
  rows: Number(row.rows),
  tally: row.tally,
  readAt: row.read_at,
});

/** The slices of a run that are not read to their end yet, in order. */
export async function pendingSlices(db: Knex, run: number): Promise<LedgerSlice[]> {
  const rows = await db("reconcile.coverage").where({ run, state: "pending" }).orderBy("slice").select<SliceRow[]>();
  return rows.map(toSlice);
}

/** Whether a run walks everything from the first record on, for any kind of run. */
export async function walksEverything(db: Knex, run: number): Promise<boolean> {
  const row = await db("reconcile.coverage").where({ run, step: "all" }).first("slice");
  return row !== undefined;
}

export interface PageProgress {
  checkpoint: Checkpoint;
  pages: number;
  rows: number;
  tally: Tally;
  readAt: Date | null;
}

/** The ledger is not where this process left it. */
class CheckpointConflict extends Error {}

/**
 * Advances a slice from its known position, in the transaction of the pages' changes. State `complete` marks it as read
 * to its end. Throws `CheckpointConflict` where the stored position is another one.
 */
export async function advanceSlice(
  trx: Knex,
  { run, number }: Pick<LedgerSlice, "run" | "number">,
  from: Pick<PageProgress, "pages">,
  to: PageProgress,
  state: "pending" | "complete" = "pending",
): Promise<void> {
  const moved = await trx("reconcile.coverage")
    .where({ run, slice: number, state: "pending", pages: from.pages })
    .update({
      state,
      checkpoint: JSON.stringify(to.checkpoint),
      pages: to.pages,
      rows: to.rows,
      read_at: to.readAt,
      tally: JSON.stringify(to.tally),
    });
  if (moved !== 1) {
    throw new CheckpointConflict(
      `slice ${number} of run ${run} is no longer at page ${from.pages}: another process is walking it, or ` +
        "reconcile.coverage was changed by hand",
    );
  }
}

/** Ends a slice that cannot be proved (`failed`) or that this service does not support (`skipped`). */
export async function closeSlice(
  db: Knex,
  { run, number }: Pick<LedgerSlice, "run" | "number">,
  { state, note }: { state: "failed" | "skipped"; note: string },
): Promise<void> {
  await db("reconcile.coverage").where({ run, slice: number }).update({ state, note });
}

/** Restarts a slice whose cursor was refused. Opens its own transaction. */
export async function restartSlice(db: Knex, { run, number }: Pick<LedgerSlice, "run" | "number">): Promise<void> {
  await db.transaction(async (trx) => {
    await trx("reconcile.coverage")
      .where({ run, slice: number })
      .update({ checkpoint: null, pages: 0, rows: 0, tally: "{}", read_at: null });
    await clearDailySums(trx, { run, slice: number });
  });
}

/**
 * Fails the slices whose list omitted existing objects, since they cannot prove completeness. One statement; returns
 * the number of slices.
 */
export async function failIncompleteSlices(db: Knex, run: number): Promise<number> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `update reconcile.coverage c set state = 'failed',
       note = format('the list omitted existing objects within the bounds of the slice: %s', lost.n)
     from (
       select slice, count(*) as n from reconcile.doubts
       where run = ? and outcome = 'lost_in_list' and slice is not null group by slice
     ) lost
     where c.run = ? and c.slice = lost.slice`,
    [run, run],
  );
  return rowCount;
}

/** Identifies a slice of a run. */
export interface SliceKey {
  run: number;
  slice: number;
}

/** The fields of a listed transaction that the sums need. */
export interface SummedTransaction {
  createdAt: string;
  currency: string;
  type: string;
  status: string;
  /** Minor units. */
  amountMinor: number;
}

/** The transactions of a page that can be summed. Unreadable ones become findings (`recordUnreadable`). */
export function summedTransactions(items: readonly WireObject[]): SummedTransaction[] {
  return items.flatMap((item) => {
    const { created_at, currency, type, status, amount } = item;
    const createdAt = typeof created_at === "string" ? canonicalTimestamp(created_at) : null;
    const isWhole =
      createdAt !== null &&
      typeof currency === "string" &&
      typeof type === "string" &&
      typeof status === "string" &&
      Number.isSafeInteger(amount);
    if (!isWhole) return [];
    return [{ createdAt, currency, type, status, amountMinor: amount as number }];
  });
}

/**
 * Adds a page of transactions to the daily sums of its slice, which the invariant `control` compares with the mirror.
 * `timeZone` (IANA) sets the day boundaries. Not idempotent: call it in the transaction that advances the slice's
 * checkpoint.
 */
export async function addDailySums(
  trx: Knex.Transaction,
  { run, slice }: SliceKey,
  timeZone: string,
  transactions: readonly SummedTransaction[],
): Promise<void> {
  if (transactions.length === 0) return;
  await trx.raw(
    `insert into reconcile.daily_sums as s (run, slice, day, currency, type, status, n, sum_minor)
     select ?, ?, cast(created_at at time zone ? as date) as day, currency, type, status, count(*), sum(amount)
     from unnest(?::timestamptz[], ?::text[], ?::text[], ?::text[], ?::bigint[])
       as t(created_at, currency, type, status, amount)
     group by day, currency, type, status
     on conflict (run, slice, day, currency, type, status)
       do update set n = s.n + excluded.n, sum_minor = s.sum_minor + excluded.sum_minor`,
    [
      run,
      slice,
      timeZone,
      sqlArray(transactions.map(({ createdAt }) => createdAt)),
      sqlArray(transactions.map(({ currency }) => currency)),
      sqlArray(transactions.map(({ type }) => type)),
      sqlArray(transactions.map(({ status }) => status)),
      sqlArray(transactions.map(({ amountMinor }) => amountMinor)),
    ],
  );
}

/** Clears a slice's sums when its walk restarts after a refused cursor. Needs the transaction of the restart. */
export async function clearDailySums(trx: Knex.Transaction, slice: SliceKey): Promise<void> {
  await trx("reconcile.daily_sums").where(slice).delete();
}
