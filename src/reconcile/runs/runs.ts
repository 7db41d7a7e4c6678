import type { Knex } from "knex";
import { dayText, localTimeIn, timeText } from "../../platform/local-time.ts";
import { type Slice, bound } from "../coverage/slice.ts";

export type RunKind = "nightly" | "full" | "range" | "import";
export type RunState = "running" | "complete" | "incomplete" | "abandoned";

export interface Run {
  id: number;
  runKey: string;
  kind: RunKind;
  /** Service time: the run answers for what was created before. */
  t0: Date;
  rangeFrom: Date | null;
  rangeTo: Date | null;
  reportOnly: boolean;
  /** The mirror was empty, or is filled: what is missing here is imported, not drift. */
  firstFill: boolean;
  pageSize: number | null;
  state: RunState;
}

export type NewRun = Omit<Run, "id" | "state" | "pageSize"> & {
  pageSize: number;
  /** What it reads counts for so many nights, and a day to spare. */
  rotationNights: number;
};

/** Opens a run with its plan, in one transaction. Null when a run has this key already. */
export async function openRun(
  db: Knex,
  { rotationNights, ...run }: NewRun,
  slices: readonly Slice[],
): Promise<Run | null> {
  return db.transaction(async (trx) => {
    const [inserted] = await trx("reconcile.runs")
      .insert({
        run_key: run.runKey,
        kind: run.kind,
        t0: run.t0,
        range_from: run.rangeFrom,
        range_to: run.rangeTo,
        report_only: run.reportOnly,
        first_fill: run.firstFill,
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
  firstFill: row.first_fill,
  pageSize: row.page_size,
  state: row.state,
});

export async function findRun(db: Knex, runKey: string): Promise<Run | null> {
  const row = await db("reconcile.runs").where({ run_key: runKey }).first<RunRow | undefined>();
  return row === undefined ? null : toRun(row);
}

/**
 * Condition on a run: it stopped before its end, and what it has not read can still be read. A run that failed for good
 * has neither a slice to read nor an object that waits.
 */
const isUnfinished = (run: string): string =>
  `(${run}.state = 'running' or ${run}.state <> 'complete' and (
     exists (select from reconcile.coverage c where c.run = ${run}.id and c.state = 'pending')
     or exists (select from reconcile.doubts d where d.run = ${run}.id and d.state = 'waiting')))`;

/** Whether a run can be gone on with. */
export async function canGoOn(db: Knex, runId: number): Promise<boolean> {
  const row = await db("reconcile.runs")
    .where({ id: runId })
    .whereRaw(isUnfinished("runs"))
    .first("id");
  return row !== undefined;
}

/**
 * The newest run that stopped before its end and asks for the same: it is gone on with. To be called under the lock,
 * when no run can be at work. A T0 of long ago would leave out too much: such a run is not taken up again.
 */
export async function findInterrupted(
  db: Knex,
  {
    kind,
    rangeFrom,
    rangeTo,
    reportOnly,
  }: Pick<Run, "kind" | "rangeFrom" | "rangeTo" | "reportOnly">,
  { since }: { since: Date },
): Promise<Run | null> {
  const row = await db("reconcile.runs")
    .where({ kind, report_only: reportOnly })
    .whereRaw("range_from is not distinct from ? and range_to is not distinct from ?", [
      rangeFrom === null ? null : bound(rangeFrom),
      rangeTo === null ? null : bound(rangeTo),
    ] as string[])
    .where("t0", ">=", since)
    .whereNot("state", "abandoned")
    .whereRaw(isUnfinished("runs"))
    .orderBy("id", "desc")
    .first<RunRow | undefined>();
  return row === undefined ? null : toRun(row);
}

/** Runs that stopped before their end and that nobody takes up again. One statement. */
export async function abandonOthers(db: Knex, runId: number): Promise<void> {
  await db("reconcile.runs")
    .where("state", "running")
    .whereNot("id", runId)
    .update({ state: "abandoned", finished_at: db.fn.now() });
}

/** An interrupted run works again. When it last ended stays known, and a report as of then answers as it did. */
export async function reopenRun(db: Knex, runId: number): Promise<void> {
  await db("reconcile.runs").where("id", runId).update({ state: "running", error: null });
}

/**
 * Ends a run. `isComplete` is asked within the transaction, when the run counts as ended: what it read is part of what
 * was read. Opens its own transaction; gives back what was said.
 */
export async function finishRun(
  db: Knex,
  runId: number,
  { totals, error }: { totals: object; error: string | null },
  isComplete: (trx: Knex.Transaction) => Promise<boolean>,
): Promise<boolean> {
  return db.transaction(async (trx) => {
    const row = () => trx("reconcile.runs").where("id", runId);
    const ended = {
      totals: JSON.stringify(totals),
      error,
      finished_at: trx.raw("clock_timestamp()"),
    };
    await row().update({ state: "incomplete", ...ended });
    const isWhole = await isComplete(trx);
    const complete = error === null && isWhole;
    if (complete) await row().update({ state: "complete" });
    await forgetSeen(trx, runId);
    return complete;
  });
}

/** What a run that can still be taken up has read stays noted, for a day: it would read every open item again. */
async function forgetSeen(trx: Knex.Transaction, runId: number): Promise<void> {
  await trx.raw(
    `delete from reconcile.seen s using reconcile.runs r, reconcile.runs ended
     where r.id = s.run and ended.id = ? and (
       r.state = 'abandoned' or not ${isUnfinished("r")} or r.t0 < ended.t0 - interval '1 day')`,
    [runId],
  );
}

/** Whether the mirror holds nothing yet. */
export async function isMirrorEmpty(db: Knex): Promise<boolean> {
  const { rows } = await db.raw<{ rows: { is_empty: boolean }[] }>(
    `select not exists (select from mirror.orders) and not exists (select from mirror.customers)
       and not exists (select from mirror.transactions) and not exists (select from mirror.subscriptions)
       as is_empty`,
  );
  return rows[0]?.is_empty === true;
}

/**
 * The key of a night's run: the minute at which it was due, as the deployment's clocks show it. Not when it begins,
 * which may be on the next day; and a minute that daylight saving repeats is one. Pure.
 */
export function nightlyKey(due: Date, timeZone: string): string {
  const local = localTimeIn(timeZone)(due);
  return `nightly:${dayText(local)}T${timeText(local)}`;
}

/** The key of the newest night, where its run was interrupted, or is at work; null where it was not. */
export async function interruptedNight(db: Knex): Promise<string | null> {
  const row = await db("reconcile.runs as r")
    .where("r.kind", "nightly")
    .orderBy("r.id", "desc")
    .first<{ run_key: string; is_interrupted: boolean } | undefined>(
      "r.run_key",
      db.raw(`r.state <> 'abandoned' and ${isUnfinished("r")} as is_interrupted`),
    );
  return row?.is_interrupted === true ? row.run_key : null;
}

/**
 * When the last run that answers for everything was started, by this machine's clock; null when none was. A run that
 * is at work or was interrupted counts: it is gone on with.
 */
export async function lastWholeRun(db: Knex): Promise<Date | null> {
  const row = await db("reconcile.runs")
    .whereIn("kind", ["nightly", "full", "import"])
    .whereNot("state", "abandoned")
    .first<{ started: Date | null }>(db.raw("max(started_at) as started"));
  return row.started;
}
