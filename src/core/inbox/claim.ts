import type { Knex } from "knex";
import { sqlArray } from "../../platform/postgres/values.ts";

/** Processing states of an event; docs/architecture.md draws the transitions between them. */
export const eventStates = ["received", "applied", "stale", "ignored", "failed", "dead"] as const;
export type EventState = (typeof eventStates)[number];

/** A stored event that a worker has locked for the length of its transaction. */
export interface ClaimedEvent {
  seq: number;
  raw: Buffer;
  receivedAt: Date;
  attempts: number;
  /** It was completed before, so this is a replay. */
  isReplay: boolean;
}

export interface Claim {
  events: ClaimedEvent[];
  /** Also locked, but over the byte limit: these stay for the next transaction. */
  left: number[];
}

export interface NextClaim extends Claim {
  /** No other transaction was applying events when this one began to. */
  leads: boolean;
}

export interface ClaimLimits {
  rows: number;
  /** Bytes of bodies, but at least one body: bounds a worker's memory. */
  bytes: number;
  /** How long a stopped worker keeps its claim until it writes; writing has limits of its own. */
  idleMs?: number;
}

const defaultIdleMs = 30_000;

/** Part of the claim's statement: the next statement may come much later. */
const limitIdle = "set_config('idle_in_transaction_session_timeout', cast(:idleMs as text), true) as idle_limit";

/**
 * Locks those of the events that are still unapplied and that no other worker has locked, and reads them. Skips failed
 * ones that are not due yet: they may be asked for late or twice, and that must not use up their attempts. Must run in
 * a transaction; its end releases the locks.
 */
export async function claimEvents(
  trx: Knex.Transaction,
  seqs: readonly number[],
  { bytes, idleMs = defaultIdleMs }: Omit<ClaimLimits, "rows">,
): Promise<Claim> {
  if (seqs.length === 0) return { events: [], left: [] };
  const { rows: locked } = await trx.raw<{ rows: LockedRow[] }>(
    `with locked as materialized (
       select seq, attempts, arrived_at is not null as is_replay from inbox.progress
       where seq = any(:seqs::bigint[])
         and (state = 'received' or (state = 'failed' and next_attempt_at <= now()))
       order by seq for update skip locked
     )
     select locked.* from locked, (select ${limitIdle} offset 0) limited order by seq`,
    { seqs: sqlArray(seqs), idleMs },
  );
  return readLocked(trx, locked, bytes);
}

/** Limits of a transaction that does not lead: the rest is left to the leader. */
interface FollowerLimits {
  atLeast: number;
  /** … or any number, if the oldest has waited for longer than this. */
  lateAfterMs: number;
}

/** The holder leads; see `claimNext`. An arbitrary fixed number. */
const leaderLock = 7_255_011_935;

/**
 * Locks the oldest events with a number above `after` that no worker has tried yet, from any receiver, and reads them.
 * Must run in a transaction, whose end releases the locks.
 *
 * `leads` marks one of all transactions at work. Only the leader takes a few events: a batch costs as much as hundreds
 * of events, so many workers with small batches cost several times as much as one with large ones.
 */
export async function claimNext(
  trx: Knex.Transaction,
  after: number,
  { rows: most, bytes, idleMs = defaultIdleMs, atLeast, lateAfterMs }: ClaimLimits & FollowerLimits,
): Promise<NextClaim> {
  const { rows } = await trx
    .raw<{ rows: (LockedRow & { leads: boolean })[] }>(
      `with leader as materialized (
         select pg_try_advisory_xact_lock(:leaderLock) as leads, ${limitIdle}
       ), locked as materialized (
         select seq, attempts, arrived_at is not null as is_replay from inbox.progress
         where state = 'received' and seq > :after
         order by seq limit :most for update skip locked
       )
       select leads, locked.* from leader left join locked on true order by seq`,
      { leaderLock, after, most, idleMs },
    )
    .options({ name: "inbox-claim" });
  const leads = rows[0]?.leads === true;
  const locked = rows.filter(({ seq }) => seq !== null);
  const [oldest] = locked;
  const takes =
    leads || locked.length >= atLeast || (oldest !== undefined && (await isLate(trx, oldest.seq, lateAfterMs)));
  return { leads, ...(await readLocked(trx, takes ? locked : [], bytes)) };
}

/** Uses the database's clock, which also dated the arrival. */
async function isLate(trx: Knex.Transaction, seq: string, lateAfterMs: number): Promise<boolean> {
  const { rows } = await trx
    .raw<{ rows: unknown[] }>(
      `select from inbox.receipts
       where seq = ? and received_at < now() - make_interval(secs => ?::float8 / 1000)`,
      [seq, lateAfterMs],
    )
    .options({ name: "inbox-late" });
  return rows.length > 0;
}

/**
 * Reads the bytes of locked rows, in order of arrival, up to a number of bytes. A statement of its own: PostgreSQL 18
 * crashes now and then where one statement locks rows and chooses their partitions row by row as well.
 */
async function readLocked(trx: Knex.Transaction, locked: readonly LockedRow[], bytes: number): Promise<Claim> {
  if (locked.length === 0) return { events: [], left: [] };
  const { rows } = await trx
    .raw<{ rows: ClaimedRow[] }>(
      `with claimed as materialized (
         select l.seq, l.attempts, r.received_at, r.raw
         from unnest(:seqs::bigint[], :attempts::int[]) l(seq, attempts) cross join lateral (
           -- Without the offset a planner that takes the tables for small would read all of them.
           select received_at, raw from inbox.receipts where seq = l.seq and raw is not null offset 0
         ) r
       ), sized as (
         select c.*, sum(octet_length(raw)) over (order by seq rows between unbounded preceding and 1 preceding) as before
         from claimed c
       )
       select seq, attempts, received_at, case when coalesce(before, 0) < :bytes then raw end as raw
       from sized order by seq`,
      {
        seqs: sqlArray(locked.map(({ seq }) => seq)),
        attempts: sqlArray(locked.map(({ attempts }) => attempts)),
        bytes,
      },
    )
    .options({ name: "inbox-read" });
  return readClaim(rows, new Set(locked.flatMap(({ seq, is_replay }) => (is_replay ? seq : []))));
}

/** Whether `claimNext` may find something: a check that costs a tenth of a claim. */
export async function isAnyUnapplied(db: Knex, after: number): Promise<boolean> {
  const { rows } = await db
    .raw<{ rows: unknown[] }>("select from inbox.progress where state = 'received' and seq > ? order by seq limit 1", [
      after,
    ])
    .options({ name: "inbox-look" });
  return rows.length > 0;
}

function readClaim(rows: readonly ClaimedRow[], replays: ReadonlySet<string>): Claim {
  const events: ClaimedEvent[] = [];
  const left: number[] = [];
  for (const { seq, received_at: receivedAt, raw, attempts } of rows) {
    if (raw === null) left.push(Number(seq));
    else {
      const isReplay = replays.has(seq);
      events.push({ seq: Number(seq), receivedAt, raw, attempts, isReplay });
    }
  }
  return { events, left };
}

interface LockedRow {
  seq: string;
  attempts: number;
  is_replay: boolean;
}

interface ClaimedRow extends Omit<LockedRow, "is_replay"> {
  received_at: Date;
  raw: Buffer | null;
}

/** The result of processing one event. */
export interface CompletedEvent {
  seq: number;
  state: Exclude<EventState, "received" | "failed">;
  reason: string | null;
  resourceType: string | null;
  resourceId: string | null;
}

/**
 * Marks events as completed, in one statement, and copies the fields that reports read out of their bytes. Belongs in
 * the transaction that changed the mirror.
 */
export async function completeEvents(trx: Knex.Transaction, completedEvents: readonly CompletedEvent[]): Promise<void> {
  if (completedEvents.length === 0) return;
  const seqs = completedEvents.map(({ seq }) => seq);
  await trx.raw(
    // By a list of numbers alone: with their bounds as well the planner expects one row, and compares all with all.
    `with receipt as materialized (
       select seq, type, event_created_at, received_at from inbox.receipts where seq = any(:seqs::bigint[])
     ), given as materialized (
       select s.*, r.type, r.event_created_at, r.received_at
       from unnest(:seqs::bigint[], :states::text[], :reasons::text[], :types::text[], :ids::text[])
         as s(seq, state, reason, resource_type, resource_id)
       left join receipt r using (seq)
     )
     update inbox.progress p
     set state = g.state, reason = g.reason, resource_type = g.resource_type, resource_id = g.resource_id,
         attempts = p.attempts + 1, next_attempt_at = null, settled_at = now(),
         object_known_at = coalesce(p.object_known_at, case when g.resource_id is not null then now() end),
         event_type = g.type, event_at = g.event_created_at, arrived_at = g.received_at
     from given g where p.seq = g.seq and p.seq = any(:seqs::bigint[])`,
    {
      seqs: sqlArray(seqs),
      states: sqlArray(completedEvents.map(({ state }) => state)),
      reasons: sqlArray(completedEvents.map(({ reason }) => reason)),
      types: sqlArray(completedEvents.map(({ resourceType }) => resourceType)),
      ids: sqlArray(completedEvents.map(({ resourceId }) => resourceId)),
    },
  );
}

/**
 * Postpones one event after its `attempt`th failure: retried after `delayMs`, or dead when that is null. Returns false
 * when another worker has already completed the event, or postponed it after the same attempt.
 */
export async function postponeEvent(
  db: Knex,
  failed: {
    seq: number;
    attempt: number;
    reason: string;
    delayMs: number | null;
    /** Type of the object that it names, if known. */
    resourceType?: string | null;
    resourceId?: string | null;
  },
): Promise<boolean> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `update inbox.progress
     set state = case when :delayMs::float8 is null then 'dead' else 'failed' end,
         attempts = :attempt, reason = :reason,
         resource_type = coalesce(:resourceType, resource_type), resource_id = coalesce(:resourceId, resource_id),
         object_known_at = coalesce(object_known_at, case when :resourceId::text is not null then now() end),
         settled_at = case when :delayMs::float8 is null then now() end,
         next_attempt_at = now() + make_interval(secs => :delayMs::float8 / 1000)
     where seq = :seq and state in ('received', 'failed') and attempts = :attempt - 1`,
    { resourceType: null, resourceId: null, ...failed },
  );
  return rowCount > 0;
}
