import type { Knex } from "knex";
import { readableUntil } from "../../../core/mirror/changes/read-changes.ts";
import { removeConsumer } from "../consumers.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { consumerOf } from "./feed-place.ts";
import type { OpenRunRow } from "./open-runs.ts";
import { lockPlanning } from "./plan-runs.ts";
import { notPaused } from "./runs.ts";

/** Runs that wait or are dead are counted up to it: a million would take a second. */
export const mostCounted = 100_000;

/** A handler as shown to people. */
export interface HandlerRow {
  name: string;
  position: number;
  /** The numbers of the feed that it has not read yet. Some were never used. */
  behind: number;
  paused_by: "person" | "failures" | "subscriber" | null;
  paused_at: Date | null;
  pause_reason: string | null;
  /** This and the next are not counted further than `mostCounted`. */
  waiting: number;
  dead: number;
  done: number;
  failed: number;
  /** The number of its postponements (`RetryLater`). */
  postponed: number;
  last_done_at: Date | null;
  last_failed_at: Date | null;
}

/** SQL: the dead and the waiting runs of a handler, each up to `:mostCounted`, by indexes that hold only those. */
const countsOf = (handler: string): string =>
  `cross join lateral (
     select count(*) as dead from (
       select from dispatch.runs where handler = ${handler} and state = 'dead' order by seq limit :mostCounted) as counted
   ) d cross join lateral (
     select count(*) - d.dead as waiting from (
       select from dispatch.runs where handler = ${handler} order by seq limit :mostCounted + d.dead) as counted
   ) w`;

/** All handlers that ever ran here, or one of them. Two statements. */
export async function readHandlers(db: Knex, name?: string): Promise<HandlerRow[]> {
  const until = await readableUntil(db);
  const { rows } = await db.raw<{ rows: Record<keyof HandlerRow, unknown>[] }>(
    `select h.name, h.position,
            greatest(0, case h.source when 'webhooks' then inbox.readable_until() else :until::bigint end - h.position)
              as behind,
            h.paused_by, h.paused_at, h.pause_reason, w.waiting, d.dead, coalesce(c.done, 0) as done,
            coalesce(c.failed, 0) as failed, coalesce(c.postponed, 0) as postponed, c.last_done_at, c.last_failed_at
     from dispatch.handlers h left join dispatch.counts c on c.handler = h.name
     ${countsOf("h.name")}
     where h.name = coalesce(:name::text, h.name) order by h.name`,
    { until, name: name ?? null, mostCounted },
  );
  const numbers = ["position", "behind", "waiting", "dead", "done", "failed", "postponed"] as const;
  return rows.map((row) => ({
    ...(row as unknown as HandlerRow),
    ...Object.fromEntries(numbers.map((field) => [field, Number(row[field])])),
  }));
}

/** All handlers that ever ran here, with the person who paused each. One statement. */
export const handlerNames = (db: Knex): Promise<Pick<HandlerRow, "name" | "paused_by">[]> =>
  db("dispatch.handlers").orderBy("name").select<Pick<HandlerRow, "name" | "paused_by">[]>("name", "paused_by");

export type LockedHandler = Pick<HandlerRow, "name" | "paused_by" | "paused_at" | "pause_reason">;

/** A handler whose row stays as it is until the transaction ends; null for an unknown one. One statement. */
export async function lockHandler(trx: Knex.Transaction, name: string): Promise<LockedHandler | null> {
  const row = await trx("dispatch.handlers")
    .where({ name })
    .forUpdate()
    .first<LockedHandler | undefined>("name", "paused_by", "paused_at", "pause_reason");
  return row ?? null;
}

/**
 * Pauses a handler until a person resumes it. Its runs in progress continue. Returns false for an unknown one.
 * Idempotent.
 */
export async function pauseHandler(db: Knex, name: string, reason: string): Promise<boolean> {
  const changed = await db("dispatch.handlers")
    .where({ name })
    .update({
      paused_at: db.raw("coalesce(paused_at, now())"),
      paused_by: "person",
      pause_reason: reason,
      probe_at: null,
    });
  return changed > 0;
}

/**
 * Ends a pause of any origin, and makes runs that wait for their next attempt due immediately. Returns false for an
 * unknown handler. Idempotent.
 */
export async function resumeHandler(db: Knex, name: string): Promise<boolean> {
  return db.transaction(async (trx) => {
    const changed = await trx("dispatch.handlers")
      .where({ name })
      .update({ ...notPaused, resumed_at: trx.fn.now() });
    if (changed > 0) await makeDue(trx, name, { state: "waiting" });
    return changed > 0;
  });
}

/** Gives dead changes, or one that is not done, a new set of attempts, immediately. Returns their number. */
export const retryRuns = (db: Knex, handler: string, which: { seq: number } | { state: "dead" }): Promise<number> =>
  makeDue(db, handler, which);

const makeDue = (db: Knex, handler: string, which: { seq: number } | { state: "dead" | "waiting" }): Promise<number> =>
  db("dispatch.runs")
    .where({ handler, is_first: true, ...which })
    .whereRaw("coalesce(claimed_until <= now(), true)")
    .update({ state: "waiting", attempts: 0, due_at: db.fn.now(), claimed_until: null });

/** The number of the change that this one waits for, of the same object; null where it is its turn. One statement. */
export async function changeBefore(
  db: Knex,
  handler: string,
  { seq, resource, id }: Pick<OpenRunRow, "seq" | "resource" | "id">,
): Promise<number | null> {
  const before = await db("dispatch.runs")
    .where({ handler, resource, id })
    .andWhere("seq", "<", seq)
    .min("seq as seq")
    .first<{ seq: string | null } | undefined>();
  return before?.seq == null ? null : Number(before.seq);
}

/**
 * Skips a change for a handler permanently, so that the later ones of its object continue. Returns false if it has no
 * such change, or is running it. One statement.
 */
export async function skipRun(db: Knex, handler: string, seq: number): Promise<boolean> {
  const { rows } = await db.raw<{ rows: [{ removed: string[] }] }>(
    "select dispatch.remove_runs(?, array[?::bigint], null) as removed",
    [handler, seq],
  );
  return rows[0].removed.length > 0;
}

/** A handler's remains, and the processes that may still use it. */
export interface HandlerRemains {
  /** Counted up to `mostCounted`. */
  waiting: number;
  dead: number;
  /** Until when processes have claimed changes of it; null where none is running. */
  runningUntil: Date | null;
}

/** The data that `removeHandler` would delete; null where there is none under that name. One statement. */
export async function readRemains(db: Knex, name: string): Promise<HandlerRemains | null> {
  const { rows } = await db.raw<{
    rows: { is_known: boolean; waiting: string; dead: string; running_until: Date | null }[];
  }>(
    `select k.is_known, w.waiting, d.dead,
            (select max(claimed_until) from dispatch.runs
             where handler = :name and is_first and state = 'waiting' and claimed_until > now()) as running_until
     from (
       select exists (select from dispatch.handlers where name = :name)
         or exists (select from dispatch.runs where handler = :name)
         or exists (select from feed.consumers where name = :consumer) as is_known
     ) k ${countsOf(":name")}`,
    { name, consumer: consumerOf(name), mostCounted },
  );
  const [row] = rows;
  if (row === undefined || !row.is_known) return null;
  return {
    waiting: Number(row.waiting),
    dead: Number(row.dead),
    runningUntil: row.running_until,
  };
}

/**
 * Forgets a handler: its place in the feed, waiting and dead runs, and its counts. The feed keeps no more changes for
 * it. A process with its code registers it again only at its next start, as a new one. Runs in progress end without
 * being marked. Idempotent, in one transaction.
 */
export async function removeHandler(db: Knex, name: string): Promise<void> {
  await inTransaction(db, async (trx) => {
    // In the planner's order: its row, then the lock for planning and removing its runs.
    await trx("dispatch.handlers").where({ name }).forUpdate().select("name");
    await lockPlanning(trx, name);
    await trx("dispatch.runs").where({ handler: name }).delete();
    await trx("dispatch.counts").where({ handler: name }).delete();
    await removeConsumer(trx, consumerOf(name));
    await trx("dispatch.handlers").where({ name }).delete();
  });
}
