import type { ClientBase } from "pg";
import type { VerifiedEvent } from "./event.ts";

/** An event waiting to be stored, with the key that makes it unique. */
export interface PendingRow {
  event: VerifiedEvent;
  /** Of the body, in hex. */
  sha256: string;
}

/** What a statement stored. */
export interface NewRows {
  seqs: number[];
  /** By `rowKey`. */
  keys: ReadonlySet<string>;
}

/**
 * All bodies travel as one binary parameter and are cut apart by the server: an array of Buffers would be
 * hex-encoded by the driver, an array of texts escaped quote by quote, and both cost more than the INSERT.
 * One row comes back, since reading many costs more than making them: nearly always all rows are new, and only
 * where they are not does it say which.
 */
const insertNew = {
  name: "inbox-append",
  text: `
    with input as (
      select * from unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::int[], $7::int[])
        with ordinality as i(event_id, type, api_version, created_at, secret_id, body_at, body_length, n)
    ), hashes as materialized (
      select decode($9::text, 'hex') as joined
    ), stored as (
      insert into inbox.receipts (event_id, raw_sha256, type, api_version, event_created_at, raw, secret_id)
      select event_id, substr(joined, (n::int - 1) * 32 + 1, 32), type, api_version, created_at,
             substr($8::bytea, body_at, body_length), secret_id
      -- One order for all receivers, so that two with the same events cannot wait for each other.
      from input, hashes order by event_id collate "C", substr(joined, (n::int - 1) * 32 + 1, 32)
      on conflict (event_id, raw_sha256) do nothing
      returning seq, event_id, raw_sha256
    ), opened as (
      insert into inbox.progress (seq) select seq from stored
    )
    select (select string_agg(seq::text, ',') from stored) as seqs,
           case when (select count(*) from stored) < cardinality($1::text[])
             then (select array_agg(encode(raw_sha256, 'hex') || ':' || event_id) from stored)
           end as keys`,
};

/**
 * Stores what is not there yet, in one statement, and says what was new. The rows must differ from each other.
 * Idempotent; its own transaction unless one is open.
 */
export async function insertNewRows(
  client: ClientBase,
  rows: readonly PendingRow[],
): Promise<NewRows> {
  const positions: number[] = [];
  let next = 1;
  for (const { event } of rows) {
    positions.push(next);
    next += event.raw.length;
  }
  const { rows: found } = await client.query<{ seqs: string | null; keys: string[] | null }>({
    ...insertNew,
    values: [
      textArray(rows.map(({ event }) => event.eventId)),
      textArray(rows.map(({ event }) => event.type)),
      textArray(rows.map(({ event }) => event.apiVersion)),
      textArray(rows.map(({ event }) => event.createdAt)),
      textArray(rows.map(({ event }) => event.secretId)),
      `{${positions.join(",")}}`,
      `{${rows.map(({ event }) => event.raw.length).join(",")}}`,
      Buffer.concat(rows.map(({ event }) => event.raw)),
      rows.map(({ sha256 }) => sha256).join(""),
    ],
  });
  const { seqs = null, keys = null } = found[0] ?? {};
  if (seqs === null) return { seqs: [], keys: new Set() };
  return { seqs: seqs.split(",").map(Number), keys: new Set(keys ?? rows.map(rowKey)) };
}

/**
 * Stores no event, by the locks and with the rights that storing one takes; rejects where they cannot be had. For a
 * probe.
 */
export async function insertNoRows(client: ClientBase): Promise<void> {
  await client.query(
    `with stored as (
       insert into inbox.receipts (event_id, raw_sha256, raw, secret_id)
       select '', ''::bytea, ''::bytea, '' where false returning seq
     )
     insert into inbox.progress (seq) select seq from stored`,
  );
}

/** An array as a parameter. The driver looks for quotes value by value; nearly always there are none. */
function textArray(values: readonly (string | null)[]): string | readonly (string | null)[] {
  const needsCare = values.includes(null) || /["\\]/.test(values.join(""));
  return needsCare ? values : `{"${values.join('","')}"}`;
}

/** What makes a row unique: the bytes and the event's id, as the server gives it back. */
export const rowKey = ({ event, sha256 }: PendingRow): string =>
  `${sha256}:${event.eventId.toWellFormed()}`;

const countRepeats = {
  name: "inbox-count-repeats",
  text: `
    insert into inbox.repeats as known (seq, times)
    select r.seq, sum(i.times)
    from unnest($1::text[], $2::int[], $3::text[]) as i(event_id, times, sha256)
      join inbox.receipts r
        on r.event_id = i.event_id and r.raw_sha256 = decode(i.sha256, 'hex')
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
      repeats.map(({ row }) => row.sha256),
    ],
  });
}
