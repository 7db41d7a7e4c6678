import type { Knex } from "knex";
import type { ConsumerLag } from "../../app/answers.ts";
import { positionAt, readableUntil } from "../../core/mirror/changes/read-changes.ts";

export type Consumer = Omit<ConsumerLag, "unreadSince">;

/** The start of a new consumer: the next change, the oldest change, or a time. */
export type Start = "now" | "beginning" | Date;

/**
 * Creates a consumer, or returns the existing one unchanged. A start at a time includes every change recorded from then
 * on, and maybe some of the minute before. The feed keeps changes until the consumer has read them: remove one that is
 * no longer needed. Idempotent.
 */
export async function createConsumer(
  db: Knex,
  name: string,
  start: Start,
): Promise<{ consumer: Consumer; isNew: boolean }> {
  const position = await positionOf(db, start);
  const [created] = await db<ConsumerRow>("feed.consumers")
    .insert({ name, position: String(position) })
    .onConflict("name")
    .ignore()
    .returning(columns);
  if (created !== undefined) return { consumer: consumerOf(created), isNew: true };
  const consumer = await readConsumer(db, name);
  return consumer === null ? createConsumer(db, name, start) : { consumer, isNew: false };
}

function positionOf(db: Knex, start: Start): Promise<number> | number {
  if (start === "beginning") return 0;
  return start === "now" ? readableUntil(db) : positionAt(db, start);
}

/** Null for an unknown name. One statement. */
export async function readConsumer(db: Knex, name: string): Promise<Consumer | null> {
  const row = await db<ConsumerRow>("feed.consumers").where({ name }).first<ConsumerRow | undefined>(columns);
  return row === undefined ? null : consumerOf(row);
}

export interface Move {
  name: string;
  /** The position that the caller read. */
  from: number;
  to: number;
}

/**
 * Moves a consumer forward. Returns false, without a move, where its position is no longer `from`: another process
 * reads under the same name, or it was removed. In the transaction of the changes' effects, each takes effect once.
 * Throws `RangeError` for a move that does not go forward. One statement.
 */
export async function moveConsumer(db: Knex, { name, from, to }: Move): Promise<boolean> {
  if (!(to > from)) throw new RangeError(`a consumer moves forward only: not from ${from} to ${to}`);
  const moved = await db<ConsumerRow>("feed.consumers")
    .where({ name, position: String(from) })
    .update({ position: String(to), moved_at: db.raw("now()") });
  return moved > 0;
}

/**
 * Records the position of a reader that keeps it elsewhere, and locks it. Creates a missing consumer. Needs the
 * transaction that handled the changes. One statement.
 */
export async function keepPosition(
  trx: Knex.Transaction,
  { name, position }: Pick<Consumer, "name" | "position">,
): Promise<void> {
  await trx.raw(
    `insert into feed.consumers (name, position) values (?, ?)
     on conflict (name) do update set position = excluded.position, moved_at = now()`,
    [name, position],
  );
}

/**
 * Removes a consumer, so that the feed keeps no changes for it. Returns its last position; null where there was none.
 * Idempotent. One statement.
 */
export async function removeConsumer(db: Knex, name: string): Promise<number | null> {
  const [removed] = await db<ConsumerRow>("feed.consumers").where({ name }).delete(["position"]);
  return removed === undefined ? null : Number(removed.position);
}

/** All consumers, the one furthest behind first. One statement. */
export async function listConsumers(db: Knex): Promise<ConsumerLag[]> {
  const { rows } = await db.raw<{ rows: (ConsumerRow & { unread_since: Date | null })[] }>(
    `select k.name, k.position, k.moved_at, k.created_at, (
       select c.recorded_at from feed.changes c where c.seq > k.position order by c.seq limit 1) as unread_since
     from feed.consumers k order by k.position, k.name`,
  );
  return rows.map((row) => ({ ...consumerOf(row), unreadSince: row.unread_since }));
}

interface ConsumerRow {
  name: string;
  position: string;
  moved_at: Date;
  created_at: Date;
}

const columns = ["name", "position", "moved_at", "created_at"] as const;

const consumerOf = (row: ConsumerRow): Consumer => ({
  name: row.name,
  position: Number(row.position),
  movedAt: row.moved_at,
  createdAt: row.created_at,
});
