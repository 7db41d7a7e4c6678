import type { Knex } from "knex";
import { lockPlanning } from "./plan-runs.ts";

/** A change that a handler has not done. */
export interface OpenRunRow {
  seq: number;
  resource: string;
  id: string;
  kind: string;
  state: "waiting" | "dead";
  attempts: number;
  /** The number of the handler's postponements. */
  postponed: number;
  /** When it is tried again; null for a dead one, and while it runs. */
  due_at: Date | null;
  is_running: boolean;
  error: string | null;
  failed_at: Date | null;
  /** Later changes of the same object, which wait for it; not counted further than `mostHeldUp`. */
  holds_up: number;
}

export const mostHeldUp = 1_000;

const columns = `
  r.seq, r.resource, r.id, r.kind, r.state, r.attempts, r.postponed, r.error, r.failed_at,
  coalesce(r.claimed_until > now(), false) as is_running,
  case when r.state = 'waiting' and coalesce(r.claimed_until <= now(), true) then r.due_at end as due_at,
  (select count(*) from (
     select from dispatch.runs n
     where n.handler = r.handler and n.resource = r.resource and n.id = r.id and n.seq > r.seq
     limit :mostHeldUp) as later) as holds_up`;

type StoredRun = OpenRunRow & { seq: string; holds_up: string };

const runOf = (row: StoredRun): OpenRunRow => ({
  ...row,
  seq: Number(row.seq),
  holds_up: Number(row.holds_up),
});

/** Changes whose turn it is and that are not done: the dead first, then those that failed, then the oldest. */
export async function readOpenRuns(
  db: Knex,
  { handler, limit }: { handler: string; limit: number },
): Promise<OpenRunRow[]> {
  const { rows } = await db.raw<{ rows: StoredRun[] }>(
    `with shown as (
       (select * from dispatch.runs where handler = :handler and state = 'dead' order by seq limit :limit)
       union all
       (select * from dispatch.runs where handler = :handler and is_first and state = 'waiting'
        order by failed_at is null, seq limit :limit)
     )
     select ${columns} from shown r order by r.state = 'waiting', r.failed_at is null, r.seq limit :limit`,
    { handler, limit, mostHeldUp },
  );
  return rows.map(runOf);
}

/** `failed`: to be tried again after a failure. `waiting`: all whose turn it is, running ones too. */
export const runStates = ["dead", "failed", "waiting"] as const;
export type RunState = (typeof runStates)[number];

/** Each uses the index that holds its rows in the order shown. */
const listings: Readonly<Record<RunState, { holds: string; key: string }>> = {
  dead: { holds: "r.state = 'dead'", key: "r.seq" },
  failed: {
    holds: "r.failed_at is not null and r.is_first and r.state = 'waiting'",
    key: "r.failed_at, r.seq",
  },
  waiting: { holds: "r.is_first and r.state = 'waiting'", key: "r.due_at, r.seq" },
};

/** A run of a list, with its place in it. */
export type ListedRun = OpenRunRow & { place: string };

/** A place in a list: a time, where the list is in the order of one, and a number. */
const placeForm = /^(?:(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)_)?(\d{1,15})$/;

/**
 * The runs of a handler in one state: the dead by their numbers, those that failed by when they did, those that wait by
 * when they are due. `after` is the place of the last one seen; one that cannot be read is the beginning. One statement.
 */
export async function listRuns(
  db: Knex,
  { handler, state, after, limit }: { handler: string; state: RunState; after: string; limit: number },
): Promise<ListedRun[]> {
  const { holds, key } = listings[state];
  const [, time, seq] = placeForm.exec(after) ?? [];
  const isTimed = state !== "dead";
  const isAfter = seq !== undefined && isTimed === (time !== undefined);
  const from = isTimed ? "(:time::timestamp at time zone 'utc', :seq::bigint)" : ":seq::bigint";
  const moment = state === "failed" ? "r.failed_at" : "r.due_at";
  const place = isTimed
    ? `to_char(${moment} at time zone 'utc', 'YYYY-MM-DD HH24:MI:SS.US') || '_' || r.seq`
    : "r.seq::text";
  const { rows } = await db.raw<{ rows: (StoredRun & { place: string })[] }>(
    `select ${columns}, ${place} as place from dispatch.runs r
     where r.handler = :handler and ${holds} ${isAfter ? `and (${key}) > ${from}` : ""} order by ${key} limit :limit`,
    { handler, limit, mostHeldUp, ...(isAfter ? { seq, ...(isTimed ? { time } : {}) } : {}) },
  );
  return rows.map((row) => ({ ...runOf(row), place: row.place }));
}

/** A run by its number; null where it was done, skipped, or never planned. One statement. */
export async function findRun(db: Knex, handler: string, seq: number): Promise<OpenRunRow | null> {
  const { rows } = await db.raw<{ rows: StoredRun[] }>(
    `select ${columns} from dispatch.runs r where r.handler = :handler and r.seq = :seq`,
    { handler, seq, mostHeldUp },
  );
  const [row] = rows;
  return row === undefined ? null : runOf(row);
}

/**
 * The same, locked until the transaction ends. A transaction that removes runs locks in this order: first against
 * planning, then the run.
 */
export async function lockRun(trx: Knex.Transaction, handler: string, seq: number): Promise<OpenRunRow | null> {
  await lockPlanning(trx, handler);
  await trx("dispatch.runs").where({ handler, seq }).forUpdate().select("seq");
  return findRun(trx, handler, seq);
}

/** The dead runs of a handler: the version for retrying all of them. */
export interface DeadRuns {
  /** Counted up to `most`. */
  count: number;
  /** The number of the newest one; null where there is none. */
  newest: number | null;
}

/** Uses only the index of dead runs. One statement. */
export async function readDead(db: Knex, handler: string, { most }: { most: number }): Promise<DeadRuns> {
  const { rows } = await db.raw<{ rows: [{ count: string; newest: string | null }] }>(
    `select (select count(*) from (
               select from dispatch.runs where handler = :handler and state = 'dead' limit :most) as counted) as count,
            (select seq from dispatch.runs where handler = :handler and state = 'dead' order by seq desc limit 1) as newest`,
    { handler, most },
  );
  const [{ count, newest }] = rows;
  return { count: Number(count), newest: newest === null ? null : Number(newest) };
}
