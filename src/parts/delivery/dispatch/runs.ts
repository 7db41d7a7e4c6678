import type { Knex } from "knex";
import { shortenedTo } from "../../../platform/redaction.ts";
import { sqlArray } from "../../../platform/postgres/values.ts";

/** A run that this process has claimed: one row of a source for one recipient. */
export interface ClaimedRun {
  handler: string;
  seq: number;
  /** The source's copy of the row (`SourceRow.item`). */
  item: unknown;
  /** From 1, the attempt in progress included. */
  attempt: number;
  /** The number of the handler's postponements. */
  postponed: number;
  /** Grows with each claim: proves that no other process has claimed the run since. */
  token: number;
  /** The handler is paused, and this run tries whether it works again. */
  isProbe: boolean;
}

/** A process's request for runs of a handler. */
export interface ClaimRequest {
  handler: string;
  free: number;
  /** How long the claim excludes others; by the database's clock. */
  leaseMs: number;
}

/**
 * Claims the oldest runs that are due: only the first one of each object, and none of a paused handler. The claims of a
 * killed process are free again when their lease has ended. One statement.
 */
export async function claimRuns(db: Knex, wanted: readonly ClaimRequest[]): Promise<ClaimedRun[]> {
  if (wanted.length === 0) return [];
  const { rows } = await db
    .raw<{ rows: ClaimedRow[] }>(
      `with wanted as (
         select w.* from unnest(?::text[], ?::int[], ?::int[]) as w(handler, free, lease_ms)
         join dispatch.handlers h on h.name = w.handler where h.paused_at is null
       ), picked as materialized (
         select w.handler, w.lease_ms, due.seq from wanted w cross join lateral (
           select r.seq from dispatch.runs r
           where r.handler = w.handler and r.is_first and r.state = 'waiting' and r.due_at <= now()
           order by r.due_at, r.seq limit w.free for update skip locked
         ) due
       )
       ${claimed("false")}`,
      [
        sqlArray(wanted.map(({ handler }) => handler)),
        sqlArray(wanted.map(({ free }) => free)),
        sqlArray(wanted.map(({ leaseMs }) => leaseMs)),
      ],
    )
    .options({ name: "dispatch-claim" });
  return rows.map(claimedRun);
}

/** How long a handler that was paused after failures rests before one more run is tried. */
const probeEveryMs = 60_000;

/**
 * Claims one run of each handler that is paused by failures and to be tried again, whether the run is due or not. One
 * statement, for one process at a time.
 */
export async function claimProbes(db: Knex, wanted: readonly Omit<ClaimRequest, "free">[]): Promise<ClaimedRun[]> {
  if (wanted.length === 0) return [];
  const { rows } = await db.raw<{ rows: ClaimedRow[] }>(
    `with probed as (
       update dispatch.handlers h set probe_at = now() + make_interval(secs => ?::float8 / 1000)
       from unnest(?::text[], ?::int[]) as w(handler, lease_ms)
       where h.name = w.handler and h.paused_by = 'failures' and h.probe_at <= now()
       returning w.handler, w.lease_ms
     ), picked as materialized (
       select p.handler, p.lease_ms, oldest.seq from probed p cross join lateral (
         select r.seq from dispatch.runs r
         where r.handler = p.handler and r.is_first and r.state = 'waiting'
           and (r.claimed_until is null or r.claimed_until <= now())
         order by r.due_at, r.seq limit 1 for update skip locked
       ) oldest
     )
     ${claimed("true")}`,
    [probeEveryMs, sqlArray(wanted.map(({ handler }) => handler)), sqlArray(wanted.map(({ leaseMs }) => leaseMs))],
  );
  return rows.map(claimedRun);
}

/** A claimed run is due when its lease has ended. */
const claimed = (isProbe: "true" | "false"): string =>
  `update dispatch.runs r
   set token = r.token + 1, attempts = r.attempts + 1,
       claimed_until = now() + make_interval(secs => p.lease_ms::float8 / 1000),
       due_at = now() + make_interval(secs => p.lease_ms::float8 / 1000)
   from picked p where r.handler = p.handler and r.seq = p.seq
   returning r.handler, r.seq, r.change, r.attempts, r.postponed, r.token, ${isProbe} as is_probe`;

interface ClaimedRow {
  handler: string;
  seq: string;
  change: unknown;
  attempts: number;
  postponed: number;
  token: number;
  is_probe: boolean;
}

function claimedRun(row: ClaimedRow): ClaimedRun {
  return {
    handler: row.handler,
    seq: Number(row.seq),
    item: row.change,
    attempt: row.attempts,
    postponed: row.postponed,
    token: row.token,
    isProbe: row.is_probe,
  };
}

type Claim = Pick<ClaimedRun, "seq" | "token">;

/**
 * Removes runs of one handler that are done, and counts them. The next runs of their objects can be claimed then.
 * Returns the numbers of those that were still claimed by their tokens: another process has the others. One statement.
 */
export async function removeDone(db: Knex, handler: string, runs: readonly Claim[]): Promise<Set<number>> {
  const { rows } = await db.raw<{ rows: [{ removed: string[] }] }>(
    `with gone as materialized (
       select dispatch.remove_runs(?, ?::bigint[], ?::int[]) as removed
     ), counted as (
       ${countOf("?", "cardinality(removed)", "from gone where cardinality(removed) > 0")}
     )
     select removed from gone`,
    [...removal(handler, runs), handler],
  );
  return new Set(rows[0].removed.map(Number));
}

/**
 * Removes a run in the transaction of its handler, as the last statement. Returns false if another process has it. Does
 * not count it: the row of the count would keep the handler's other transactions waiting until this one is committed.
 */
export async function removeOwn(trx: Knex.Transaction, run: Pick<ClaimedRun, "handler"> & Claim): Promise<boolean> {
  const { rows } = await trx
    .raw<{ rows: [{ removed: string[] }] }>(
      "select dispatch.remove_runs(?, ?::bigint[], ?::int[]) as removed",
      removal(run.handler, [run]),
    )
    .options({ name: "dispatch-remove" });
  return rows[0].removed.length > 0;
}

/** Counts runs that `removeOwn` has removed. One statement. */
export async function countDone(db: Knex, handler: string, runs: number): Promise<void> {
  await db.raw(countOf("?", "?::bigint"), [handler, runs]);
}

const removal = (handler: string, runs: readonly Claim[]) => [
  handler,
  sqlArray(runs.map(({ seq }) => seq)),
  sqlArray(runs.map(({ token }) => token)),
];

const countOf = (handler: string, runs: string, from = ""): string =>
  `insert into dispatch.counts as c (handler, done, last_done_at) select ${handler}, ${runs}, now() ${from}
   on conflict (handler) do update set done = c.done + excluded.done, last_done_at = excluded.last_done_at`;

/** The outcome of a run that was not done. */
export interface PutOff {
  /** Null: it is dead. */
  delayMs: number | null;
  error: string | null;
  /** Whether the attempt failed. Otherwise it is tried again as if it had not begun. */
  isFailure: boolean;
  /** Its handler postponed it, which is counted apart. */
  isPostponed: boolean;
}

const maxErrorLength = 200;

/** Puts a claimed run off, or gives it up. Returns false if another process has it. One statement. */
export async function putOffRun(
  db: Knex,
  { handler, seq, token }: Pick<ClaimedRun, "handler" | "seq" | "token">,
  { delayMs, error, isFailure, isPostponed }: PutOff,
): Promise<boolean> {
  const { rows } = await db.raw<{ rows: unknown[] }>(
    `with put_off as (
       update dispatch.runs
       set state = case when :delayMs::float8 is null then 'dead' else 'waiting' end,
           due_at = now() + make_interval(secs => coalesce(:delayMs::float8, 0) / 1000), claimed_until = null,
           attempts = case when :isFailure then attempts else attempts - 1 end,
           postponed = postponed + :isPostponed::boolean::int,
           error = case when :isFailure then :error else error end,
           failed_at = case when :isFailure then now() else failed_at end
       where handler = :handler and seq = :seq and token = :token and state = 'waiting'
       returning handler
     ), counted as (
       insert into dispatch.counts as c (handler, failed, last_failed_at, postponed)
       select handler, :isFailure::boolean::int, case when :isFailure then now() end, :isPostponed::boolean::int
       from put_off where :isFailure or :isPostponed
       on conflict (handler) do update
       set failed = c.failed + excluded.failed, postponed = c.postponed + excluded.postponed,
           last_failed_at = coalesce(excluded.last_failed_at, c.last_failed_at)
     )
     select from put_off`,
    {
      handler,
      seq,
      token,
      delayMs,
      isFailure,
      isPostponed,
      error: error === null ? null : shortenedTo(error, maxErrorLength),
    },
  );
  return rows.length > 0;
}

/** The failures after which a handler is paused: so many objects in a row, without one that was done. */
const mostFailing = 20;

/** Pauses a handler that failed for many objects without one success. Returns whether it paused it. One statement. */
export async function pauseIfAllFail(db: Knex, handler: string, error: string): Promise<boolean> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `update dispatch.handlers h
     set paused_at = now(), paused_by = 'failures', pause_reason = :reason,
         probe_at = now() + make_interval(secs => :probeEveryMs::float8 / 1000)
     where h.name = :handler and h.paused_at is null and (
       select count(*) from (
         select distinct r.resource, r.id from dispatch.runs r
         where r.handler = :handler and r.failed_at is not null and r.failed_at > greatest(h.resumed_at, (
           select last_done_at from dispatch.counts where handler = :handler))
         limit :mostFailing
       ) as failing) >= :mostFailing`,
    {
      handler,
      mostFailing,
      probeEveryMs,
      reason: `It failed for ${mostFailing} objects in a row, the last time with: ${shortenedTo(error, maxErrorLength)}.`,
    },
  );
  return rowCount > 0;
}

/** Pauses a recipient that accepts no more, until a person resumes it. Idempotent. */
export async function pauseAfterRefusal(db: Knex, handler: string, error: string): Promise<boolean> {
  const changed = await db("dispatch.handlers")
    .where({ name: handler })
    .whereRaw("paused_by is distinct from 'person' and paused_by is distinct from 'subscriber'")
    .update({
      paused_at: db.raw("coalesce(paused_at, now())"),
      paused_by: "subscriber",
      pause_reason: `It wants nothing more: ${shortenedTo(error, maxErrorLength)}.`,
      probe_at: null,
    });
  return changed > 0;
}

/** Ends a pause after failures, since a run succeeded. Idempotent. */
export async function resumeAfterSuccess(db: Knex, handler: string): Promise<boolean> {
  const changed = await db("dispatch.handlers")
    .where({ name: handler, paused_by: "failures" })
    .update({ ...notPaused, resumed_at: db.fn.now() });
  return changed > 0;
}

export const notPaused = {
  paused_at: null,
  paused_by: null,
  pause_reason: null,
  probe_at: null,
} as const;
