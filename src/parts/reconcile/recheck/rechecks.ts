import type { Knex } from "knex";
import type { Resource } from "../../../core/mirror/snapshot.ts";
import { sqlArray } from "../../../platform/postgres/values.ts";
import type { UnreadableObject } from "../compare/decode-answer.ts";
import { andNotAbsent, mirrorTableOf } from "../coverage/slice.ts";

/** Reasons for reading an object again by its id. */
export type RecheckReason =
  | "young"
  | "mismatch"
  | "not_listed"
  | "open_item"
  | "out_of_time"
  | "not_embedded"
  | "thin"
  | "unreadable";

export interface Recheck {
  resource: Resource;
  id: string;
  why: RecheckReason;
  /** The slice that should have shown the object. */
  slice: number | null;
  missingSince: Date | null;
  reads: number;
}

export interface NewRecheck {
  resource: Resource;
  id: string;
  why: RecheckReason;
  dueAt: Date;
  /** When the object was created, ISO 8601; left out: as the mirror has it. */
  createdAt?: string | null;
}

/** Queues rechecks in one statement: one per object and run, with the first reason. Idempotent. */
export async function addRechecks(
  db: Knex,
  { run, noticedAt }: { run: number; noticedAt: Date },
  rechecks: readonly NewRecheck[],
): Promise<void> {
  if (rechecks.length === 0) return;
  await db.raw(
    `insert into reconcile.doubts (run, resource, id, why, due_at, object_at, noticed_at)
     select ?, g.*, ? from unnest(?::text[], ?::text[], ?::text[], ?::timestamptz[], ?::timestamptz[]) as g
     on conflict do nothing`,
    [
      run,
      noticedAt,
      sqlArray(rechecks.map(({ resource }) => resource)),
      sqlArray(rechecks.map(({ id }) => id)),
      sqlArray(rechecks.map(({ why }) => why)),
      sqlArray(rechecks.map(({ dueAt }) => dueAt.toISOString())),
      sqlArray(rechecks.map(({ createdAt }) => createdAt ?? null)),
    ],
  );
}

/**
 * Records objects that a page shows in an unreadable form as concluded rechecks: nothing is proved at their creation
 * time. One statement; idempotent.
 */
export async function addUnreadable(
  db: Knex,
  { run, noticedAt }: { run: number; noticedAt: Date },
  objects: readonly UnreadableObject[],
): Promise<void> {
  if (objects.length === 0) return;
  await db.raw(
    `insert into reconcile.doubts (run, resource, id, object_at, why, state, outcome, due_at, noticed_at)
     select ?, g.*, 'unreadable', 'settled', 'unreadable', noticed.at, noticed.at
     from unnest(?::text[], ?::text[], ?::timestamptz[]) as g, (values (?::timestamptz)) as noticed(at)
     on conflict do nothing`,
    [
      run,
      sqlArray(objects.map(({ resource }) => resource)),
      sqlArray(objects.map(({ id }) => id)),
      sqlArray(objects.map(({ createdAt }) => createdAt)),
      noticedAt,
    ],
  );
}

/** The range in which pages of a closed slice should have shown every object. */
export interface ShownRange {
  resource: Resource;
  slice: number;
  /** Null: open on that side. */
  after: { createdAt: string; isIncluded: boolean } | null;
  before: { createdAt: string; isIncluded: boolean } | null;
  shownIds: readonly string[];
}

/**
 * Queues rechecks of the rows that pages should have shown and did not: those created within the pages' range. Leaves
 * out rows known to be absent. One statement; returns the number of rows.
 *
 * "not in (select …)" makes a hash table of the ids. With "<> all", a plan for any ids compares each row with each id:
 * 14 µs of PostgreSQL an order, where the server preferred such a plan.
 */
export async function recheckUnlisted(
  db: Knex,
  { run, noticedAt }: { run: number; noticedAt: Date },
  { resource, slice, after, before, shownIds }: ShownRange,
): Promise<number> {
  const conditions = [
    ...(after === null ? [] : [`m.created_at ${after.isIncluded ? ">=" : ">"} ?`]),
    ...(before === null ? [] : [`m.created_at ${before.isIncluded ? "<=" : "<"} ?`]),
  ];
  const bounds = [after, before].flatMap((end) => (end === null ? [] : [end.createdAt]));
  const query = db.raw<{ rowCount: number }>(
    `insert into reconcile.doubts (run, resource, id, why, slice, due_at, noticed_at, object_at)
     select ?, ?, m.id, 'not_listed', ?, ?, ?, m.created_at from mirror.${mirrorTableOf(resource)} m
     where ${[...conditions, "m.created_at is not null"].join(" and ")} and m.id not in (select unnest(?::text[]))
       ${andNotAbsent(resource)}
     on conflict (run, resource, id) do update set slice = excluded.slice where doubts.slice is null`,
    [run, resource, slice, noticedAt, noticedAt, ...bounds, sqlArray(shownIds)],
  );
  // A prepared statement: it runs at every checkpoint, and planning it costs more than an empty result.
  const { rowCount } = await query.options({
    name: `unlisted-${resource}-${after?.isIncluded ?? "all"}-${before?.isIncluded ?? "all"}`,
  });
  return rowCount;
}

/**
 * Takes over the rechecks left by runs that ended early, so that none is lost. Their objects stay unproved until this
 * run has read them. Open items and rows out of time are left out: this run finds its own. One statement; idempotent.
 */
export async function takeOverRechecks(db: Knex, run: number): Promise<void> {
  await db.raw(
    `with left_over as (
       update reconcile.doubts d set state = 'settled', outcome = format('left to run %s', cast(:run as bigint))
       where d.run <> :run and d.state = 'waiting'
       returning d.resource, d.id, d.why, d.object_at, d.due_at, d.noticed_at
     )
     insert into reconcile.doubts (run, resource, id, why, object_at, due_at, noticed_at)
     select distinct on (l.resource, l.id) cast(:run as bigint), l.resource, l.id, l.why, l.object_at, l.due_at, l.noticed_at
     from left_over l where not reconcile.is_routine_read(l.why)
     order by l.resource, l.id, l.due_at
     on conflict do nothing`,
    { run },
  );
}

/** The rechecks that are due, the longest due first. */
export async function dueRechecks(
  db: Knex,
  run: number,
  { dueBefore, limit }: { dueBefore: Date; limit: number },
): Promise<Recheck[]> {
  const rows = await db("reconcile.doubts")
    .where({ run, state: "waiting" })
    .where("due_at", "<=", dueBefore)
    .orderBy([{ column: "due_at" }, { column: "resource" }, { column: "id" }])
    .limit(limit)
    .select<RecheckRow[]>();
  return rows.map((row) => ({
    resource: row.resource,
    id: row.id,
    why: row.why,
    slice: row.slice,
    missingSince: row.missing_since,
    reads: row.reads,
  }));
}

interface RecheckRow {
  resource: Resource;
  id: string;
  why: RecheckReason;
  slice: number | null;
  missing_since: Date | null;
  reads: number;
}

export interface WaitingRechecks {
  waiting: number;
  /** Service time at which the first and the last of them are due; null where none waits. */
  nextDueAt: Date | null;
  lastDueAt: Date | null;
}

/** The number of waiting rechecks, and until when they wait. */
export async function waitingRechecks(db: Knex, run: number): Promise<WaitingRechecks> {
  const row = await db("reconcile.doubts")
    .where({ run, state: "waiting" })
    .first<{ waiting: string; next_due: Date | null; last_due: Date | null }>(
      db.raw("count(*) as waiting, min(due_at) as next_due, max(due_at) as last_due"),
    );
  return { waiting: Number(row.waiting), nextDueAt: row.next_due, lastDueAt: row.last_due };
}

export interface RecheckUpdate {
  state: "waiting" | "absent" | "settled";
  outcome: string | null;
  dueAt?: Date;
  missingSince?: Date;
  /** When the object was created, as this read shows it, ISO 8601. Used where it was not known yet. */
  createdAt?: string | null;
}

/** Records the result of a read. Call it in the transaction of the read's changes. */
export async function updateRecheck(
  db: Knex,
  run: number,
  { resource, id }: Pick<Recheck, "resource" | "id">,
  { state, outcome, dueAt, missingSince, createdAt = null }: RecheckUpdate,
): Promise<void> {
  await db("reconcile.doubts")
    .where({ run, resource, id })
    .update({
      state,
      outcome,
      reads: db.raw("reads + 1"),
      ...(dueAt === undefined ? {} : { due_at: dueAt }),
      ...(missingSince === undefined ? {} : { missing_since: missingSince }),
      ...(createdAt === null ? {} : { object_at: db.raw("coalesce(object_at, ?)", [createdAt]) }),
    });
}

const keptDays = 60;
const batchSize = 5_000;

/**
 * Forgets the reads of open items, and of rows that no list shows, that were concluded two months ago: every night
 * makes many of them, without a lasting effect. No report as of any time changes by it: such a read is no hole in a
 * proof, and while it was open its own run had not ended, and so did not count. One of those that a run did not reach
 * stays: it marks that the run never counts. Differing reads are never deleted: while they were open, they were holes
 * in earlier runs' proofs. One statement a batch, each a transaction of its own; idempotent. Returns the number of
 * rows.
 */
export async function forgetRechecks(
  db: Knex,
  { now, stopping }: { now: Date; stopping?: AbortSignal },
): Promise<number> {
  const before = new Date(now.getTime() - keptDays * 86_400_000);
  for (let forgotten = 0; ;) {
    const { rowCount } = await db.raw<{ rowCount: number }>(
      `delete from reconcile.doubts where (run, resource, id) in (
         select d.run, d.resource, d.id from reconcile.doubts d
         where d.settled_at < ? and d.state = 'settled' and reconcile.is_routine_read(d.why)
           and d.outcome <> 'unreadable'
           and (d.outcome not like 'left to run %' or exists (
             select from reconcile.doubts e
             where e.run = d.run and reconcile.is_routine_read(e.why) and e.outcome like 'left to run %'
               and (e.recorded_at, e.resource, e.id) < (d.recorded_at, d.resource, d.id)))
           and not exists (
             select from reconcile.run_states s
             where s.run = d.run and s.has_ended and s.recorded_at < d.settled_at)
         limit ?)`,
      [before, batchSize],
    );
    forgotten += rowCount;
    if (rowCount < batchSize || stopping?.aborted === true) return forgotten;
  }
}
