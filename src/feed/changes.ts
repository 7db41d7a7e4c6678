import type { Knex } from "knex";

/** One change of one object, as the feed tells it (mirror/changes/kinds.ts has the vocabulary). */
export interface Change {
  /** Its number. Grows along the feed, with gaps; the changes of one object are in the order in which they happened. */
  seq: number;
  resource: string;
  id: string;
  /** `order.refunded`, `subscription.renewed`, …, or `<resource>.updated`. */
  kind: string;
  /** The object's status before and after; null where it has none, or did not exist. */
  fromStatus: string | null;
  toStatus: string | null;
  /** Of `order.refunded`: the refund's transaction and its amount in minor units; null otherwise. */
  transactionId: string | null;
  amount: number | null;
  currency: string | null;
  /** The state in `mirror.versions` that the change led to; null where a change shows none. */
  state: { group: string; at: Date; hash: string } | null;
  /** `event:<seq>`, `fetch`, `import`, `reconcile:<run>`, `heal`. */
  cause: string;
  /** It came late: a later state was known already, and the mirror's row did not change. */
  isSuperseded: boolean;
  recordedAt: Date;
}

export interface FeedPage {
  changes: Change[];
  /** All changes up to it were looked at: the position from which to read on. */
  position: number;
  /** More changes can be read at once. */
  hasMore: boolean;
}

export interface FeedQuery {
  /** Changes with a higher number. */
  after: number;
  limit: number;
  /** Only these kinds; all without it. */
  kinds?: readonly string[];
}

/**
 * Reads the next changes in the order of their numbers. Never misses one that commits late: it stops before what is
 * still being written. Two or three statements, at READ COMMITTED, outside of a transaction, on the primary.
 */
export async function readChanges(db: Knex, { after, limit, kinds }: FeedQuery): Promise<FeedPage> {
  const until = await readableUntil(db);
  if (until <= after) return { changes: [], position: after, hasMore: false };
  const query = db<ChangeRow>("feed.changes")
    .where("seq", ">", after)
    .where("seq", "<=", until)
    .orderBy("seq")
    .limit(limit);
  if (kinds !== undefined) void query.whereIn("kind", [...kinds]);
  const rows = await query;
  const isFull = rows.length === limit;
  const position = isFull ? Number(rows.at(-1)?.seq ?? until) : until;
  return { changes: rows.map(changeOf), position, hasMore: isFull };
}

/** The number up to which the feed is complete: what was committed up to now, or never will be. One statement. */
export async function readableUntil(db: Knex): Promise<number> {
  const { rows } = await db.raw<{ rows: [{ until: string }] }>(
    "select feed.readable_until() as until",
  );
  return Number(rows[0].until);
}

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
