import type { Knex } from "knex";
import { longestWaitMs } from "../../../platform/http/exchange.ts";
import { dayText, localTimeIn, timeText } from "../../../platform/local-time.ts";
import { noteCaughtUp } from "../../../core/mirror/restores.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { type Slice, boundText } from "../coverage/slice.ts";

export const runKinds = ["nightly", "full", "range", "import"] as const;
export type RunKind = (typeof runKinds)[number];
export const runStates = ["running", "complete", "incomplete", "abandoned"] as const;
export type RunState = (typeof runStates)[number];

export interface Run {
  id: number;
  runKey: string;
  kind: RunKind;
  /** Service time: the run covers everything created before it. */
  t0: Date;
  rangeFrom: Date | null;
  rangeTo: Date | null;
  reportOnly: boolean;
  /** The run is the initial import: objects missing here are imported, and are not drift. */
  isInitialImport: boolean;
  pageSize: number | null;
  state: RunState;
}

export type NewRun = Omit<Run, "id" | "state"> & {
  /** Its reads count for this many nightly runs, plus one day of reserve. */
  rotationNights: number;
};

export type BeforeRun = (trx: Knex.Transaction) => Promise<void>;

/**
 * Opens a run with its plan, in one transaction. Null when a run with this key exists. What `before` throws, in the same
 * transaction, keeps it from being opened.
 */
export async function openRun(
  db: Knex,
  { rotationNights, ...run }: NewRun,
  slices: readonly Slice[],
  before: BeforeRun = async () => {},
): Promise<Run | null> {
  return inTransaction(db, async (trx) => {
    await before(trx);
    const [inserted] = await trx("reconcile.runs")
      .insert({
        run_key: run.runKey,
        kind: run.kind,
        t0: run.t0,
        range_from: run.rangeFrom,
        range_to: run.rangeTo,
        report_only: run.reportOnly,
        first_fill: run.isInitialImport,
        page_size: run.pageSize,
        rotation_nights: rotationNights,
      })
      .onConflict("run_key")
      .ignore()
      .returning<{ id: string }[]>("id");
    if (inserted === undefined) return null;
    const id = Number(inserted.id);
    if (slices.length > 0)
      await trx("reconcile.coverage").insert(
        slices.map((slice, n) => ({
          run: id,
          slice: n,
          step: slice.step,
          resource: slice.resource,
          path: slice.path,
          filter: JSON.stringify(slice.filter),
          direction: slice.direction,
          created_from: slice.createdFrom,
          created_before: slice.createdBefore,
          is_closed: slice.isClosed,
          closes_cycle: slice.closesCycle,
          reason: slice.reason,
        })),
      );
    return { ...run, id, state: "running" as const };
  });
}

interface RunRow {
  id: string;
  run_key: string;
  kind: RunKind;
  t0: Date;
  range_from: Date | null;
  range_to: Date | null;
  report_only: boolean;
  first_fill: boolean;
  page_size: number | null;
  state: RunState;
}

const toRun = (row: RunRow): Run => ({
  id: Number(row.id),
  runKey: row.run_key,
  kind: row.kind,
  t0: row.t0,
  rangeFrom: row.range_from,
  rangeTo: row.range_to,
  reportOnly: row.report_only,
  isInitialImport: row.first_fill,
  pageSize: row.page_size,
  state: row.state,
});

export async function findRun(db: Knex, runKey: string): Promise<Run | null> {
  const row = await db("reconcile.runs").where({ run_key: runKey }).first<RunRow | undefined>();
  return row === undefined ? null : toRun(row);
}

/**
 * SQL condition on a run: it has not ended, or ended early and can be resumed. A run that failed for good has neither a
 * slice to read nor a recheck waiting.
 */
const isUnfinished = (run: string): string =>
  `(${run}.state = 'running' or ${run}.state <> 'complete' and (
     exists (select from reconcile.coverage c where c.run = ${run}.id and c.state = 'pending')
     or exists (select from reconcile.doubts d where d.run = ${run}.id and d.state = 'waiting')))`;

export async function canResume(db: Knex, runId: number): Promise<boolean> {
  const row = await db("reconcile.runs").where({ id: runId }).whereRaw(isUnfinished("runs")).first("id");
  return row !== undefined;
}

/**
 * The newest run that stopped early and has the same request, to be resumed. Call it under the lease, when no run can
 * be at work. `since`: a run with an older T0 would leave out too many new objects.
 */
export async function findInterrupted(
  db: Knex,
  { kind, rangeFrom, rangeTo, reportOnly }: Pick<Run, "kind" | "rangeFrom" | "rangeTo" | "reportOnly">,
  { since }: { since: Date },
): Promise<Run | null> {
  const row = await db("reconcile.runs")
    .where({ kind, report_only: reportOnly })
    .whereRaw("range_from is not distinct from ? and range_to is not distinct from ?", [
      rangeFrom === null ? null : boundText(rangeFrom),
      rangeTo === null ? null : boundText(rangeTo),
    ] as string[])
    .where("t0", ">=", since)
    .whereNot("state", "abandoned")
    .whereRaw(isUnfinished("runs"))
    .orderBy("id", "desc")
    .first<RunRow | undefined>();
  return row === undefined ? null : toRun(row);
}

/** Abandons the other runs that never ended: none will be resumed. Call it under the lease. One statement. */
export async function abandonOthers(db: Knex, runId: number): Promise<void> {
  await db("reconcile.runs")
    .where("state", "running")
    .whereNot("id", runId)
    .update({ state: "abandoned", finished_at: db.fn.now() });
}

/**
 * Reopens an interrupted run. Its last end stays in `reconcile.run_states`, so a report as of then gives the same
 * answer as before.
 */
export async function reopenRun(db: Knex, runId: number): Promise<void> {
  await db("reconcile.runs").where("id", runId).update({ state: "running", error: null, resume_after: null });
}

/**
 * The time until which the service asked for no calls, by the database's clock, as `reconcile.runs.resume_after` stores
 * it.
 */
const resumeAfter = (db: Knex, ms: number | null): Knex.Raw | null =>
  ms === null ? null : db.raw("clock_timestamp() + make_interval(secs => ?)", [ms / 1_000]);

/** A run that could not begin is tried again under its key, and the service asks for another wait. One statement. */
export async function putOffRun(db: Knex, runKey: string, ms: number): Promise<void> {
  await db("reconcile.runs")
    .where({ run_key: runKey })
    .update({ resume_after: resumeAfter(db, ms), finished_at: db.raw("clock_timestamp()") });
}

/**
 * Until when the service put off the last run; null where it did not. `isOver` once that time has come; no wait is
 * longer than the client accepts, even after the clock was changed. One statement.
 */
export async function lastPutOff(db: Knex): Promise<{ until: Date; isOver: boolean } | null> {
  const { rows } = await db.raw<{ rows: { until: Date | null; is_over: boolean }[] }>(
    `select resume_after as until,
            clock_timestamp() not between resume_after - make_interval(secs => ?) and resume_after as is_over
     from reconcile.runs order by finished_at desc nulls last, id desc limit 1`,
    [longestWaitMs / 1_000],
  );
  const [last] = rows;
  return last?.until == null ? null : { until: last.until, isOver: last.is_over };
}

/**
 * Ends a run. `isComplete` is called within the transaction, once the run counts as ended, since its own reads are part
 * of the coverage. Opens its own transaction; returns whether the run is complete, and when the service accepts calls
 * again.
 */
export async function finishRun(
  db: Knex,
  runId: number,
  { totals, error, resumeAfterMs }: { totals: object; error: string | null; resumeAfterMs: number | null },
  isComplete: (trx: Knex.Transaction) => Promise<boolean>,
): Promise<{ complete: boolean; resumeAfter: Date | null }> {
  return db.transaction(async (trx) => {
    const row = () => trx("reconcile.runs").where("id", runId);
    const ended = {
      totals: JSON.stringify(totals),
      error,
      resume_after: resumeAfter(trx, resumeAfterMs),
      finished_at: trx.raw("clock_timestamp()"),
    };
    const [put] = await row()
      .update({ state: "incomplete", ...ended })
      .returning<{ resume_after: Date | null }[]>("resume_after");
    const isWhole = await isComplete(trx);
    const complete = error === null && isWhole;
    if (complete) {
      const [ended] = await row()
        .update({ state: "complete" })
        .returning<(Pick<RunRow, "kind" | "report_only"> & { started_at: Date })[]>([
          "kind",
          "report_only",
          "started_at",
        ]);
      // Others do not read what has long been settled.
      const readsAll = ended?.kind === "full" || ended?.kind === "import";
      if (readsAll && !ended.report_only) await noteCaughtUp(trx, ended.started_at);
    }
    await forgetSeen(trx, runId);
    return { complete, resumeAfter: put?.resume_after ?? null };
  });
}

/**
 * Deletes the lists of open items read by runs that will not be resumed. A resumed run would read each of the items
 * again without them.
 */
async function forgetSeen(trx: Knex.Transaction, runId: number): Promise<void> {
  await trx.raw(
    `delete from reconcile.seen s using reconcile.runs r, reconcile.runs ended
     where r.id = s.run and ended.id = ? and (
       r.state = 'abandoned' or not ${isUnfinished("r")} or r.t0 < ended.t0 - interval '1 day')`,
    [runId],
  );
}

/**
 * The key of a nightly run: the minute at which it was due, in the deployment's local time. Not its actual start, which
 * may be on the next day. A minute that daylight saving repeats gives one key.
 */
export function nightlyKey(due: Date, timeZone: string): string {
  const local = localTimeIn(timeZone)(due);
  return `nightly:${dayText(local)}T${timeText(local)}`;
}

/**
 * The key of the newest nightly run that began, if it is running or can be resumed; null otherwise. An attempt whose
 * first call the service refused is skipped: the one before it may be waiting.
 */
export async function resumableNightlyKey(db: Knex): Promise<string | null> {
  const row = await db("reconcile.runs as r")
    .where("r.kind", "nightly")
    .whereRaw("exists (select from reconcile.coverage c where c.run = r.id)")
    .orderBy("r.id", "desc")
    .first<{ run_key: string; is_interrupted: boolean } | undefined>(
      "r.run_key",
      db.raw(`r.state <> 'abandoned' and ${isUnfinished("r")} as is_interrupted`),
    );
  return row?.is_interrupted === true ? row.run_key : null;
}

/**
 * The start of the last run that covers everything, by this machine's clock; null when there was none. A running or
 * interrupted run counts: it will be resumed. One that never began does not: its night is still open.
 */
export async function lastFullAnswerStart(db: Knex): Promise<Date | null> {
  const row = await db("reconcile.runs")
    .whereIn("kind", ["nightly", "full", "import"])
    .whereNot("state", "abandoned")
    .whereRaw("(state <> 'incomplete' or exists (select from reconcile.coverage c where c.run = runs.id))")
    .first<{ started: Date | null }>(db.raw("max(started_at) as started"));
  return row.started;
}
