import type { Knex } from "knex";
import { sqlArray } from "../../platform/postgres/values.ts";

/** A request to read an object from the service. */
export interface RefetchRequest {
  resource: string;
  id: string;
  reason: "thin" | "tie" | "dispute" | "alert" | "unbelieved";
  /** Service time, canonical form. An answer dated earlier does not complete the refetch. */
  notBefore: string | null;
}

/**
 * Requests refetches, one row for each object. A repeated request raises the row's generation, so a read that is
 * already in progress does not complete it. Belongs in the transaction that found the need.
 */
export async function requestRefetches(trx: Knex, requested: readonly RefetchRequest[]): Promise<void> {
  const byObject = new Map<string, RefetchRequest>();
  for (const fetch of requested) {
    const key = `${fetch.resource}:${fetch.id}`;
    const known = byObject.get(key);
    if (known === undefined || (fetch.notBefore ?? "") > (known.notBefore ?? "")) {
      byObject.set(key, fetch);
    }
  }
  const fetches = inLockOrder([...byObject.values()]);
  if (fetches.length === 0) return;
  await trx.raw(
    `insert into inbox.fetches as f (resource, id, reason, not_before)
     select * from unnest(?::text[], ?::text[], ?::text[], ?::timestamptz[])
     on conflict (resource, id) do update
     set generation = f.generation + 1, due_at = least(f.due_at, now()), reason = excluded.reason,
         not_before = greatest(f.not_before, excluded.not_before), attempts = 0,
         useless_answers = 0`,
    [
      sqlArray(fetches.map(({ resource }) => resource)),
      sqlArray(fetches.map(({ id }) => id)),
      sqlArray(fetches.map(({ reason }) => reason)),
      sqlArray(fetches.map(({ notBefore }) => notBefore)),
    ],
  );
}

/** All statements lock several refetches in one order, so that none waits for another in a circle. */
function inLockOrder<T extends { resource: string; id: string }>(fetches: readonly T[]): T[] {
  const keyed = fetches.map((fetch) => [`${fetch.resource}:${fetch.id}`, fetch] as const);
  return keyed.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, fetch]) => fetch);
}

export interface DueRefetch {
  resource: string;
  id: string;
  reason: RefetchRequest["reason"];
  generation: number;
  /** Number of times that it was taken, this time included. */
  attempts: number;
  uselessAnswers: number;
  notBefore: Date | null;
  missingSince: Date | null;
}

export interface TakeOptions {
  limit: number;
  leaseSeconds: number;
  only?: string;
  /** Refetches of every other resource. */
  except?: string;
}

/**
 * Takes refetches that are due and leases them for `leaseSeconds`, so a crash delays them but loses none. One
 * statement, its own transaction.
 */
export async function takeDueRefetches(
  db: Knex,
  { limit, leaseSeconds, only, except }: TakeOptions,
): Promise<DueRefetch[]> {
  const { rows } = await db.raw<{ rows: RefetchRow[] }>(
    `update inbox.fetches f set due_at = now() + make_interval(secs => :leaseSeconds), attempts = f.attempts + 1
     from (select resource, id from inbox.fetches
           where due_at <= now() and resource = coalesce(:only::text, resource)
             and resource is distinct from :except::text
           order by due_at limit :limit for update skip locked) due
     where f.resource = due.resource and f.id = due.id
     returning f.resource, f.id, f.reason, f.generation, f.attempts, f.useless_answers, f.not_before,
       f.missing_since`,
    { limit, leaseSeconds, only: only ?? null, except: except ?? null },
  );
  return rows.map((row) => ({
    resource: row.resource,
    id: row.id,
    reason: row.reason,
    generation: row.generation,
    attempts: row.attempts,
    uselessAnswers: row.useless_answers,
    notBefore: row.not_before,
    missingSince: row.missing_since,
  }));
}

interface RefetchRow {
  resource: string;
  id: string;
  reason: RefetchRequest["reason"];
  generation: number;
  attempts: number;
  useless_answers: number;
  not_before: Date | null;
  missing_since: Date | null;
}

type RefetchKey = Pick<DueRefetch, "resource" | "id" | "generation">;

/** Extends the lease of a refetch in progress to `leaseSeconds` from now. */
export async function extendLease(db: Knex, { resource, id }: RefetchKey, leaseSeconds: number): Promise<void> {
  await db.raw("update inbox.fetches set due_at = now() + make_interval(secs => ?) where resource = ? and id = ?", [
    leaseSeconds,
    resource,
    id,
  ]);
}

/**
 * Completes refetches whose answers were applied. One that was requested again in between stays and becomes due. One
 * statement, which locks the rows in the order of `requestRefetches`.
 */
export async function completeRefetches(trx: Knex, fetches: readonly RefetchKey[]): Promise<void> {
  if (fetches.length === 0) return;
  const sorted = inLockOrder(fetches);
  await trx.raw(
    `with locked as materialized (
       select f.resource, f.id, f.generation = done.generation as is_over
       from unnest(?::text[], ?::text[], ?::int[]) as done(resource, id, generation) cross join lateral (
         select * from inbox.fetches where resource = done.resource and id = done.id for update) f
     ), gone as (
       delete from inbox.fetches f using locked l where f.resource = l.resource and f.id = l.id and l.is_over
     )
     -- The object was read, so an earlier "unknown" no longer counts as the first of two.
     update inbox.fetches f set due_at = now(), missing_since = null
     from locked l where f.resource = l.resource and f.id = l.id and not l.is_over`,
    [
      sqlArray(sorted.map(({ resource }) => resource)),
      sqlArray(sorted.map(({ id }) => id)),
      sqlArray(sorted.map(({ generation }) => generation)),
    ],
  );
}

/**
 * Postpones a refetch: the service was unavailable, answered too early, or gave no usable object (yet). The number of
 * useless answers stays unless it is given.
 */
export async function postponeRefetch(
  db: Knex,
  { resource, id, generation }: RefetchKey,
  { delayMs, error, missingSince, uselessAnswers }: Postponement,
): Promise<void> {
  await db.raw(
    `update inbox.fetches set due_at = now() + make_interval(secs => ?::float8 / 1000), last_error = ?,
       missing_since = ?, useless_answers = coalesce(?, useless_answers)
     where resource = ? and id = ? and generation = ?`,
    [delayMs, error, missingSince ?? null, uselessAnswers ?? null, resource, id, generation],
  );
}

interface Postponement {
  delayMs: number;
  error: string;
  missingSince?: Date | null;
  uselessAnswers?: number;
}
