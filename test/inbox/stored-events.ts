import { createHash, randomUUID } from "node:crypto";
import type { Knex } from "knex";
import type { EventState } from "../../src/core/inbox/claim.ts";
import { type VerifiedEvent, eventNumbers } from "../../src/core/inbox/store-batch.ts";
import { takeTurn } from "../../src/platform/postgres/numbered-rows.ts";

/** An event as the receiver hands it over; each one differs from all others. */
export function verifiedEvent(given: Partial<VerifiedEvent> = {}): VerifiedEvent {
  const eventId = given.eventId ?? `evt_${randomUUID()}`;
  return {
    raw: Buffer.from(JSON.stringify({ id: eventId })),
    secretId: "env-1",
    eventId,
    type: "order.created",
    apiVersion: "2026-01-01",
    createdAt: "2026-03-01T12:00:00.000000Z",
    ...given,
  };
}

export const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

export interface GivenRow {
  state?: EventState;
  eventId?: string;
  type?: string;
  raw?: Buffer | null;
  /** The service's time. */
  createdAt?: string | null;
  receivedAgoSeconds?: number;
  /** Negative: it is due since then. */
  dueInSeconds?: number | null;
  attempts?: number;
  reason?: string | null;
  resourceType?: string | null;
  resourceId?: string | null;
}

/**
 * Puts a row into the inbox in any state and of any age, and gives back its sequence number. One statement, as the
 * receiver's is: nobody may see an event without its progress.
 */
export async function storeRow(db: Knex, given: GivenRow = {}): Promise<number> {
  const { eventId = `evt_${randomUUID()}`, raw = Buffer.from(`{"id":"${eventId}"}`) } = given;
  const { rows } = await db.raw<{ rows: { seq: string }[] }>(
    `with turn as materialized (
       select ${takeTurn(eventNumbers)}
     ), stored as (
       insert into inbox.receipts (seq, event_id, raw_sha256, type, event_created_at, api_version, received_at, raw,
         secret_id)
       select nextval('inbox.event_numbers'), g.* from turn cross join (
         values (?, ?::bytea, ?, ?::timestamptz, '2026-01-01', now() - make_interval(secs => ?), ?::bytea, 'env-1')
       ) as g
       returning seq
     )
     insert into inbox.progress (seq, state, attempts, next_attempt_at, reason, resource_type, resource_id)
     select seq, ?, ?, now() + make_interval(secs => ?::float8), ?, ?, ? from stored returning seq`,
    [
      eventId,
      createHash("sha256")
        .update(raw ?? eventId)
        .digest(),
      given.type ?? "order.created",
      given.createdAt ?? null,
      given.receivedAgoSeconds ?? 0,
      raw as Buffer,
      given.state ?? "received",
      given.attempts ?? 0,
      given.dueInSeconds ?? null,
      given.reason ?? null,
      given.resourceType ?? null,
      given.resourceId ?? null,
    ] as string[],
  );
  return Number(rows[0]?.seq);
}

export interface ProgressRow {
  state: EventState;
  attempts: number;
  reason: string | null;
  next_attempt_at: Date | null;
  settled_at: Date | null;
  resource_type: string | null;
  resource_id: string | null;
}

export async function progressOf(db: Knex, seq: number): Promise<ProgressRow> {
  const row = await db("inbox.progress").where({ seq }).first<ProgressRow | undefined>();
  if (row === undefined) throw new Error(`no progress row ${seq}`);
  return row;
}

export async function emptyInbox(db: Knex): Promise<void> {
  // Of many partitions each would be truncated.
  await db.raw(
    `with receipts as (delete from inbox.receipts), progress as (delete from inbox.progress),
       seen as (delete from inbox.seen)
     delete from inbox.fetches`,
  );
}
