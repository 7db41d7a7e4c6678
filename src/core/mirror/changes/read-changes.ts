import type { Knex } from "knex";
import { ConfigurationError } from "../../../platform/errors.ts";
import { errorCode } from "../../../platform/postgres/errors.ts";
import { searchPosition } from "../../../platform/postgres/numbered-rows.ts";

/** One change of one object in the feed (mirror/changes/kinds.ts has the vocabulary). */
export interface Change {
  /**
   * Sequence number. Grows along the feed, with gaps; the changes of one object are in the order in which they
   * happened.
   */
  seq: number;
  resource: string;
  id: string;
  /** `order.refunded`, `subscription.renewed`, …, or `<resource>.updated`. */
  kind: string;
  /** The object's status before and after; null where it has none, or did not exist. */
  fromStatus: string | null;
  toStatus: string | null;
  /** For `order.refunded`: the refund's transaction and its amount in minor units; null otherwise. */
  transactionId: string | null;
  amount: number | null;
  currency: string | null;
  /** The state in `mirror.versions` that the change led to; null where a change shows none. */
  state: { group: string; at: Date; hash: string } | null;
  /** `event:<seq>`, `fetch`, `reconcile:<run>`, `heal`, `erasure`; `import` for history, from any source. */
  cause: string;
  /** It came late: a later state was already known, and the mirror's row did not change. */
  isSuperseded: boolean;
  recordedAt: Date;
}

export interface FeedPage {
  changes: Change[];
  /** All changes up to this number were searched: continue from here. */
  position: number;
  /** More changes can be read now. */
  hasMore: boolean;
}

/** A filter of changes; empty, it passes all. It needs no index: the changes in between are read and left out. */
export interface FeedFilter {
  kinds?: readonly string[];
  resource?: string;
  id?: string;
  /** Recorded at this time or later. */
  recordedFrom?: Date;
}

export interface FeedQuery extends FeedFilter {
  /** Changes with a higher number. */
  after: number;
  limit: number;
}

/**
 * Reads the next changes in the order of their numbers. Never misses one that commits late: it stops before uncommitted
 * ones. Two or three statements, at READ COMMITTED, outside of a transaction, on the primary.
 */
export async function readChanges(db: Knex, { after, limit, ...filter }: FeedQuery): Promise<FeedPage> {
  const until = await readableUntil(db);
  if (until <= after) return { changes: [], position: after, hasMore: false };
  const rows = await selected(db, { after, until }, filter).orderBy("seq").limit(limit);
  const isFull = rows.length === limit;
  const position = isFull ? Number(rows.at(-1)?.seq ?? until) : until;
  return { changes: rows.map(changeOf), position, hasMore: isFull };
}

/** How many changes there are with a number in `(after, until]`. One statement. */
export async function countChanges(db: Knex, { after, until }: { after: number; until: number }): Promise<number> {
  const [row] = await db("feed.changes")
    .where("seq", ">", after)
    .where("seq", "<=", until)
    .count<{ n: string }[]>({ n: "*" });
  return Number(row?.n ?? 0);
}

/** Reads the newest changes, in the order of their numbers; the position is that from which to read on. Two statements. */
export async function readNewest(
  db: Knex,
  { limit, ...filter }: Omit<FeedQuery, "after">,
): Promise<Pick<FeedPage, "changes" | "position">> {
  const until = await readableUntil(db);
  const rows = await selected(db, { after: 0, until }, filter).orderBy("seq", "desc").limit(limit);
  return { changes: rows.reverse().map(changeOf), position: until };
}

function selected(
  db: Knex,
  { after, until }: { after: number; until: number },
  { kinds, resource, id, recordedFrom }: FeedFilter,
): Knex.QueryBuilder<ChangeRow, ChangeRow[]> {
  const query = db<ChangeRow>("feed.changes").where("seq", ">", after).where("seq", "<=", until);
  if (kinds !== undefined) void query.whereIn("kind", [...kinds]);
  if (resource !== undefined) void query.where({ resource });
  if (id !== undefined) void query.where({ id });
  if (recordedFrom !== undefined) void query.where("recorded_at", ">=", recordedFrom);
  return query;
}

/**
 * How long before its number a change may be dated: it has the start time of its transaction, which takes half a minute
 * at most (`beginWriting`).
 */
const datedBeforeMs = 60_000;

/**
 * A position before every change that was recorded at that time or later; few that were recorded before it follow.
 * Some 40 statements.
 */
export async function positionAt(db: Knex, time: Date): Promise<number> {
  const early = new Date(time.getTime() - datedBeforeMs);
  const until = await readableUntil(db);
  return searchPosition(until, early, async (after) => {
    const [next] = await selected(db, { after, until }, {}).orderBy("seq").limit(1);
    return next === undefined ? null : { seq: Number(next.seq), at: next.recorded_at };
  });
}

/**
 * The number up to which the feed is complete: all earlier numbers are committed, or never will be. One statement.
 * Throws `ConfigurationError` on a standby, which cannot know it.
 */
export async function readableUntil(db: Knex): Promise<number> {
  try {
    const { rows } = await db.raw<{ rows: [{ until: string }] }>("select feed.readable_until() as until");
    return Number(rows[0].until);
  } catch (error) {
    if (errorCode(error) !== notOnStandby) throw error;
    throw new ConfigurationError(
      "The database is a standby. It does not show which changes are still being written on the primary, so a reader of " +
        "the feed would miss some. Point DATABASE_URL at the primary.",
      { cause: error },
    );
  }
}

/** Raised by readable-until.sql: object_not_in_prerequisite_state. */
const notOnStandby = "55000";

interface ChangeRow {
  seq: string;
  resource: string;
  id: string;
  kind: string;
  from_status: string | null;
  to_status: string | null;
  transaction_id: string | null;
  amount: string | null;
  currency: string | null;
  state_group: string | null;
  state_at: Date | null;
  state_hash: string | null;
  cause: string;
  is_superseded: boolean;
  recorded_at: Date;
}

function changeOf(row: ChangeRow): Change {
  const { state_group: group, state_at: at, state_hash: hash } = row;
  return {
    seq: Number(row.seq),
    resource: row.resource,
    id: row.id,
    kind: row.kind,
    fromStatus: row.from_status,
    toStatus: row.to_status,
    transactionId: row.transaction_id,
    amount: row.amount === null ? null : Number(row.amount),
    currency: row.currency,
    state: group === null || at === null || hash === null ? null : { group, at, hash },
    cause: row.cause,
    isSuperseded: row.is_superseded,
    recordedAt: row.recorded_at,
  };
}

/** A change as JSON shows it: by the names of the columns, as SQL does. */
export const changeJson = (change: Change) => ({
  seq: change.seq,
  resource: change.resource,
  id: change.id,
  kind: change.kind,
  from_status: change.fromStatus,
  to_status: change.toStatus,
  transaction_id: change.transactionId,
  amount: change.amount,
  currency: change.currency,
  state_group: change.state?.group ?? null,
  state_at: change.state?.at ?? null,
  state_hash: change.state?.hash ?? null,
  cause: change.cause,
  is_superseded: change.isSuperseded,
  recorded_at: change.recordedAt,
});

/** The most changes that are read to find those of one cause. */
const readForCause = 50_000;

/**
 * The changes that a transaction wrote for a cause, such as `event:7`. `at`: when it began, as `inbox.progress` has it
 * for an event. Searches the changes of those minutes, so that no index by cause is needed; may miss some where more
 * than `readForCause` were written in that time. Some 40 statements, as `readChanges`.
 */
export async function changesOfCause(db: Knex, cause: string, at: Date): Promise<Change[]> {
  const after = await positionAt(db, at);
  const { rows } = await db.raw<{ rows: ChangeRow[] }>(
    `select * from (select * from feed.changes where seq > :after order by seq limit :most) c
     where c.cause = :cause order by c.seq limit 200`,
    { after, most: readForCause, cause },
  );
  return rows.map(changeOf);
}

/** Called before a transaction writes, it returns what to call for the changes that it wrote. Repeatable read only. */
export async function watchChanges(trx: Knex.Transaction): Promise<() => Promise<Change[]>> {
  const newest = await trx("feed.changes").max<{ seq: string | null }[]>("seq as seq");
  const after = newest[0]?.seq ?? 0;
  return async () => {
    const rows = await trx<ChangeRow>("feed.changes").where("seq", ">", after).orderBy("seq").limit(200);
    return rows.map(changeOf);
  };
}
