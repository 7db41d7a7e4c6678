import type { Knex } from "knex";
import type { Resource } from "../mirror/observation.ts";
import { clearDailySums } from "./daily-sums.ts";
import type { Slice } from "./slice.ts";
import { bound } from "./slice.ts";

export type Verdict =
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

/** How many objects of a slice came to which verdict. */
export type Tally = Partial<Record<Verdict, number>>;

/** Where a walk stands: what the next page begins after, and the boundary of the last one. */
export interface Checkpoint {
  /** Null before the first page. */
  cursor: string | null;
  /** `created_at` of the last object shown, and the objects shown that share it. */
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
  createdFrom: row.created_from === null ? null : bound(row.created_from),
  createdBefore: row.created_before === null ? null : bound(row.created_before),
  isClosed: row.is_closed,
  closesCycle: row.closes_cycle,
  reason: row.reason,
  checkpoint: row.checkpoint ?? beforeFirstPage,
  pages: row.pages,
  rows: Number(row.rows),
  tally: row.tally,
  readAt: row.read_at,
});

/** The slices of a run that are still to be read to their end, in order. */
export async function pendingSlices(db: Knex, run: number): Promise<LedgerSlice[]> {
  const rows = await db("reconcile.coverage")
    .where({ run, state: "pending" })
    .orderBy("slice")
    .select<SliceRow[]>();
  return rows.map(toSlice);
}

/** Whether a run walks everything from the first record on, whatever its kind. */
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

/** Another process goes on with the same slice, or the ledger was changed by hand. */
class CheckpointConflict extends Error {}

/**
 * Moves a slice on from where it is known to be, in the transaction of what the pages changed. `state`: it was read to
 * its end. Throws `CheckpointConflict` where the stored slice stands elsewhere.
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
  if (moved !== 1)
    throw new CheckpointConflict(`slice ${number} of run ${run} was moved meanwhile`);
}

/** Ends a slice that cannot be proved (`failed`) or that means nothing at this service (`skipped`). */
export async function closeSlice(
  db: Knex,
  { run, number }: Pick<LedgerSlice, "run" | "number">,
  { state, note }: { state: "failed" | "skipped"; note: string },
): Promise<void> {
  await db("reconcile.coverage").where({ run, slice: number }).update({ state, note });
}

/** Begins a slice again: its cursor was refused. Opens its own transaction. */
export async function restartSlice(
  db: Knex,
  { run, number }: Pick<LedgerSlice, "run" | "number">,
): Promise<void> {
  await db.transaction(async (trx) => {
    await trx("reconcile.coverage")
      .where({ run, slice: number })
      .update({ checkpoint: null, pages: 0, rows: 0, tally: "{}", read_at: null });
    await clearDailySums(trx, { run, slice: number });
  });
}
