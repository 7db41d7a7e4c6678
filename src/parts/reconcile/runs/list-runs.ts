import type { Knex } from "knex";
import type { Resource } from "../../../core/mirror/snapshot.ts";
import type { LedgerSlice } from "../coverage/ledger.ts";
import type { RunKind, RunState } from "./runs.ts";

/** A run as people see it. Times are the database's, but for `t0` and the range, which are the service's. */
export interface RunRow {
  id: number;
  runKey: string;
  kind: RunKind;
  state: RunState;
  t0: Date;
  rangeFrom: Date | null;
  rangeTo: Date | null;
  reportOnly: boolean;
  isInitialImport: boolean;
  startedAt: Date;
  finishedAt: Date | null;
  error: string | null;
  /** Null until it has ended once. */
  totals: StoredTotals | null;
}

/** A run's results (`RunTotals`) as stored in its row: amounts as text. */
export interface StoredTotals {
  slices: Record<string, number>;
  pages: number;
  rows: Record<string, number>;
  verdicts: Record<string, number>;
  confirmed: Record<string, number>;
  calls: number;
  healed: Record<string, number>;
  left: Record<string, number>;
  acknowledged: Record<string, number>;
  amountAtRiskMinor: Record<string, string>;
  otherFindings: Record<string, number>;
}

export interface RunFilter {
  kind?: RunKind | null;
  state?: RunState | null;
  /** Runs older than this one: its `id`. */
  before?: number | null;
  /** Runs that began at this time or later. */
  since?: Date | null;
}

/** The newest first. One statement. */
export async function listRuns(
  db: Knex,
  { kind = null, state = null, before = null, since = null, limit }: RunFilter & { limit: number },
): Promise<RunRow[]> {
  const query = db("reconcile.runs").orderBy("id", "desc").limit(limit);
  if (kind !== null) void query.where({ kind });
  if (state !== null) void query.where({ state });
  if (before !== null) void query.where("id", "<", before);
  if (since !== null) void query.where("started_at", ">=", since);
  return (await query.select<StoredRun[]>("*")).map(toRow);
}

/** One statement. */
export async function findRunById(db: Knex, id: number): Promise<RunRow | null> {
  const row = await db("reconcile.runs").where({ id }).first<StoredRun | undefined>();
  return row === undefined ? null : toRow(row);
}

/** A part of a list that a run reads, with how far it is. */
export interface RunSlice {
  number: number;
  step: string;
  resource: Resource;
  from: Date | null;
  before: Date | null;
  /** The reason for reading it, for people. */
  reason: string;
  state: "pending" | "complete" | "skipped" | "failed";
  pages: number;
  rows: number;
  readAt: Date | null;
  tally: LedgerSlice["tally"];
  /** The reason why it is not proved. */
  note: string | null;
}

/** In the order in which they are read. One statement. */
export async function runSlices(db: Knex, run: number): Promise<RunSlice[]> {
  const rows = await db("reconcile.coverage").where({ run }).orderBy("slice").select<StoredSlice[]>("*");
  return rows.map((row) => ({
    number: row.slice,
    step: row.step,
    resource: row.resource,
    from: row.created_from,
    before: row.created_before,
    reason: row.reason,
    state: row.state,
    pages: row.pages,
    rows: Number(row.rows),
    readAt: row.read_at,
    tally: row.tally,
    note: row.note,
  }));
}

interface StoredRun {
  id: string;
  run_key: string;
  kind: RunKind;
  state: RunState;
  t0: Date;
  range_from: Date | null;
  range_to: Date | null;
  report_only: boolean;
  first_fill: boolean;
  started_at: Date;
  finished_at: Date | null;
  error: string | null;
  totals: StoredTotals | Record<string, never>;
}

interface StoredSlice {
  slice: number;
  step: string;
  resource: Resource;
  created_from: Date | null;
  created_before: Date | null;
  reason: string;
  state: RunSlice["state"];
  pages: number;
  rows: string;
  read_at: Date | null;
  tally: LedgerSlice["tally"];
  note: string | null;
}

const toRow = (row: StoredRun): RunRow => ({
  id: Number(row.id),
  runKey: row.run_key,
  kind: row.kind,
  state: row.state,
  t0: row.t0,
  rangeFrom: row.range_from,
  rangeTo: row.range_to,
  reportOnly: row.report_only,
  isInitialImport: row.first_fill,
  startedAt: row.started_at,
  finishedAt: row.finished_at,
  error: row.error,
  totals: "slices" in row.totals ? (row.totals as StoredTotals) : null,
});
