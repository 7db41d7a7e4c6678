import type { ClientBase } from "pg";
import type { VerifiedEvent } from "./event.ts";

/** An event waiting to be stored, with the key that makes it unique. */
export interface PendingRow {
  event: VerifiedEvent;
  sha256: Buffer;
}

/**
 * All bodies travel as one binary parameter and are cut apart by the server: an array of Buffers would be
 * hex-encoded by the driver, an array of texts escaped quote by quote, and both cost more than the INSERT.
 */
const insertNew = {
  name: "inbox-append",
  text: `
    with input as (
      select * from unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::int[], $7::int[])
        with ordinality as i(event_id, type, api_version, created_at, secret_id, body_at, body_length, n)
    ), stored as (
      insert into inbox.receipts (event_id, raw_sha256, type, api_version, event_created_at, raw, secret_id)
      select event_id, substr($9::bytea, (n::int - 1) * 32 + 1, 32), type, api_version, created_at,
             substr($8::bytea, body_at, body_length), secret_id
      -- One order for all receivers, so that two with the same events cannot wait for each other.
      from input order by event_id collate "C", substr($9::bytea, (n::int - 1) * 32 + 1, 32)
      on conflict (event_id, raw_sha256) do nothing
      returning seq, event_id, raw_sha256
    ), opened as (
      insert into inbox.progress (seq) select seq from stored
    )
    select seq, event_id, encode(raw_sha256, 'hex') as sha256 from stored`,
};

/**
 * Stores what is not there yet, in one statement, and gives back the sequence number of every row that is new,
 * by `rowKey`. The rows must differ from each other. Idempotent; its own transaction unless one is open.
 */
export async function insertNewRows(
  client: ClientBase,
  rows: readonly PendingRow[],
): Promise<Map<string, number>> {
  const positions: number[] = [];
  let next = 1;
  for (const { event } of rows) {
    positions.push(next);
    next += event.raw.length;
  }
  const { rows: stored } = await client.query<{ seq: string; event_id: string; sha256: string }>({
    ...insertNew,
    values: [
      rows.map(({ event }) => event.eventId),
      rows.map(({ event }) => event.type),
      rows.map(({ event }) => event.apiVersion),
      rows.map(({ event }) => event.createdAt),
      rows.map(({ event }) => event.secretId),
      positions,
      rows.map(({ event }) => event.raw.length),
      Buffer.concat(rows.map(({ event }) => event.raw)),
      Buffer.concat(rows.map(({ sha256 }) => sha256)),
    ],
  });
  return new Map(stored.map((row) => [`${row.sha256}:${row.event_id}`, Number(row.seq)]));
}

/** What makes a row unique: the bytes and the event's id, as the server gives it back. */
export const rowKey = ({ event, sha256 }: PendingRow): string =>
  `${sha256.toString("hex")}:${event.eventId.toWellFormed()}`;

const countRepeats = {
  name: "inbox-count-repeats",
  text: `
    insert into inbox.repeats as known (seq, times)
    select r.seq, sum(i.times)
    from unnest($1::text[], $2::int[]) with ordinality as i(event_id, times, n)
      join inbox.receipts r
        on r.event_id = i.event_id and r.raw_sha256 = substr($3::bytea, (i.n::int - 1) * 32 + 1, 32)
    group by r.seq order by r.seq
    on conflict (seq) do update set times = known.times + excluded.times`,
};

/** Counts further deliveries of rows that are stored already. */
export async function countRepeatedRows(
  client: ClientBase,
  repeats: readonly { row: PendingRow; times: number }[],
): Promise<void> {
  await client.query({
    ...countRepeats,
    values: [
      repeats.map(({ row }) => row.event.eventId),
      repeats.map(({ times }) => times),
      Buffer.concat(repeats.map(({ row }) => row.sha256)),
    ],
  });
}
