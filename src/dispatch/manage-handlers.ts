import type { Knex } from "knex";
import { readableUntil } from "../feed/changes.ts";
import { notPaused } from "./runs.ts";

/** A handler as people see it. */
export interface HandlerRow {
  name: string;
  position: number;
  /** Numbers of the feed that it has not looked at yet. Some were never used. */
  behind: number;
  paused_by: "person" | "failures" | null;
  paused_at: Date | null;
  pause_reason: string | null;
  waiting: number;
  dead: number;
  done: number;
  failed: number;
  last_done_at: Date | null;
  last_failed_at: Date | null;
}

/** All handlers that ever ran here, or one of them. Two statements. */
export async function readHandlers(db: Knex, name?: string): Promise<HandlerRow[]> {
  const until = await readableUntil(db);
  const { rows } = await db.raw<{ rows: Record<keyof HandlerRow, unknown>[] }>(
    `select h.name, h.position, greatest(0, :until::bigint - h.position) as behind, h.paused_by, h.paused_at,
            h.pause_reason, r.waiting, r.dead, coalesce(c.done, 0) as done, coalesce(c.failed, 0) as failed,
            c.last_done_at, c.last_failed_at
     from dispatch.handlers h left join dispatch.counts c on c.handler = h.name
     cross join lateral (
       select count(*) filter (where state = 'waiting') as waiting, count(*) filter (where state = 'dead') as dead
       from dispatch.runs where handler = h.name
     ) r
     where h.name = coalesce(:name::text, h.name) order by h.name`,
    { until, name: name ?? null },
  );
  const numbers = ["position", "behind", "waiting", "dead", "done", "failed"] as const;
  return rows.map((row) => ({
    ...(row as unknown as HandlerRow),
    ...Object.fromEntries(numbers.map((field) => [field, Number(row[field])])),
  }));
}

/** A change that a handler has not done. */
export interface OpenRunRow {
  seq: number;
  resource: string;
  id: string;
  kind: string;
  state: "waiting" | "dead";
  attempts: number;
  /** When it is tried again; null for a dead one, and while it runs. */
  due_at: Date | null;
  is_running: boolean;
  error: string | null;
  failed_at: Date | null;
  /** Later changes of the same object, which wait for it. */
  holds_up: number;
}

/** Changes whose turn it is and that are not done: the dead first, then those that failed, then the oldest. */
export async function readOpenRuns(
  db: Knex,
  { handler, limit }: { handler: string; limit: number },
): Promise<OpenRunRow[]> {
  const { rows } = await db.raw<{ rows: (OpenRunRow & { seq: string; holds_up: string })[] }>(
    `select r.seq, r.resource, r.id, r.kind, r.state, r.attempts, r.error, r.failed_at,
            coalesce(r.claimed_until > now(), false) as is_running,
            case when r.state = 'waiting' and coalesce(r.claimed_until <= now(), true) then r.due_at end as due_at,
            (select count(*) from dispatch.runs n
             where n.handler = r.handler and n.resource = r.resource and n.id = r.id and n.seq > r.seq) as holds_up
     from dispatch.runs r where r.handler = ? and r.is_first
     order by r.state = 'waiting', r.failed_at is null, r.seq limit ?`,
    [handler, limit],
  );
  return rows.map((row) => ({ ...row, seq: Number(row.seq), holds_up: Number(row.holds_up) }));
}

/** Pauses a handler until a person resumes it. What it runs goes on. Returns false for an unknown one. Idempotent. */
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
 * Ends a pause, whoever began it, and makes due at once what waits for its next attempt. Returns false for an unknown
 * handler. Idempotent.
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

/** Gives dead changes, or one that is not done, all their attempts again, at once. Returns how many. */
export const retryRuns = (
  db: Knex,
  handler: string,
  which: { seq: number } | { state: "dead" },
): Promise<number> => makeDue(db, handler, which);

const makeDue = (
  db: Knex,
  handler: string,
  which: { seq: number } | { state: "dead" | "waiting" },
): Promise<number> =>
  db("dispatch.runs")
    .where({ handler, is_first: true, ...which })
    .whereRaw("coalesce(claimed_until <= now(), true)")
    .update({ state: "waiting", attempts: 0, due_at: db.fn.now(), claimed_until: null });

/**
 * Gives up a change for a handler for good, so that the later ones of its object go on. Returns false if it has no such
 * change, or runs it just now. One statement.
 */
export async function skipRun(db: Knex, handler: string, seq: number): Promise<boolean> {
  const { rows } = await db.raw<{ rows: [{ removed: string[] }] }>(
    "select dispatch.remove_runs(?, array[?::bigint], null) as removed",
    [handler, seq],
  );
  return rows[0].removed.length > 0;
}
