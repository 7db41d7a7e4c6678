import type { ClientBase } from "pg";
import { TallyhookError } from "../../platform/errors.ts";
import type { Log } from "../../platform/log.ts";
import { takeTurn } from "../../platform/postgres/numbered-rows.ts";

/** The longest text that is copied from an event into its own column. */
export const maxExtractLength = 255;

/** An authentic event: its exact bytes, and the fields that could be read from them. */
export interface VerifiedEvent {
  raw: Buffer;
  /** The signing secret that matched. */
  secretId: string;
  /** The envelope's id, or `sha256:<hex>` when it has none or one that does not fit the column. */
  eventId: string;
  type: string | null;
  apiVersion: string | null;
  /** In the fixed form of `canonicalTimestamp`. */
  createdAt: string | null;
}

export interface AppendResult {
  eventId: string;
  /** The same bytes with the same id were already stored. */
  duplicate: boolean;
}

/** A row whose sender waits for the answer. */
export interface WaitingRow extends PendingRow {
  resolve(appended: AppendResult): void;
  reject(error: Error): void;
}

export interface StoreDeps {
  client: ClientBase;
  log: Log;
}

export interface StoredBatch {
  /** Sequence numbers of the new rows. */
  seqs: number[];
  repeats: { row: PendingRow; times: number }[];
  answer(): void;
}

/**
 * Stores a batch. Of several copies in it, only the first is inserted; the others count as repeats. Answers are written
 * when `answer` is called.
 */
export async function storeBatch(deps: StoreDeps, batch: readonly WaitingRow[]): Promise<StoredBatch> {
  const first = new Map<string, WaitingRow>();
  const copies: WaitingRow[] = [];
  for (const row of batch) {
    if (first.has(row.key)) copies.push(row);
    else first.set(row.key, row);
  }
  const distinct = copies.length === 0 ? batch : [...first.values()];
  const { seqs, known } = await insertOrSplit(deps, distinct);
  const repeats = new Map<string, { row: PendingRow; times: number }>();
  const count = ({ key }: WaitingRow): void => {
    const row = first.get(key);
    if (row !== undefined) repeats.set(key, { row, times: (repeats.get(key)?.times ?? 0) + 1 });
  };
  for (const row of distinct) if (known.has(row.key)) count(row);
  copies.forEach(count);
  const answer = () => {
    for (const { key, event, resolve } of distinct) {
      resolve({ eventId: event.eventId, duplicate: known.has(key) });
    }
    for (const { key, event, resolve } of copies) {
      // The first copy has another id if it was first stored as bytes only. Its copies are answered with that id.
      resolve({ eventId: (first.get(key)?.event ?? event).eventId, duplicate: true });
    }
  };
  return { seqs, repeats: [...repeats.values()], answer };
}

/**
 * Inserts all rows in one statement. When the server refuses a value, the batch is halved until the faulty row is
 * alone. That row is stored as bytes only, without its extracted fields; the others are not affected.
 */
async function insertOrSplit(deps: StoreDeps, rows: readonly WaitingRow[]): Promise<NewRows> {
  try {
    return await insertNewRows(deps.client, rows);
  } catch (error) {
    if (!isRefusedValue(error)) throw error;
    const [only] = rows;
    if (rows.length === 1 && only !== undefined) return insertBytesOnly(deps, only, error);
    const half = Math.ceil(rows.length / 2);
    const first = await insertOrSplit(deps, rows.slice(0, half));
    const second = await insertOrSplit(deps, rows.slice(half));
    return {
      seqs: [...first.seqs, ...second.seqs],
      known: new Set([...first.known, ...second.known]),
    };
  }
}

async function insertBytesOnly({ client, log }: StoreDeps, row: WaitingRow, refusal: unknown): Promise<NewRows> {
  const { code } = refusal as { code?: string };
  const eventId = `sha256:${row.sha256}`;
  log.warn({ code, eventId }, "an event is stored as bytes only: the database refused one of its fields");
  row.event = { ...row.event, eventId, type: null, apiVersion: null, createdAt: null };
  return insertNewRows(client, [row]);
}

/** SQLSTATE class 22, data exception: the class for values that the server refuses. */
function isRefusedValue(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return typeof code === "string" && code.startsWith("22");
}

/** An event waiting to be stored. */
export interface PendingRow {
  event: VerifiedEvent;
  /** SHA-256 of the body, in hex. */
  sha256: string;
  /** See `keyOf`. */
  key: string;
}

/** The rows that a statement inserted. */
export interface NewRows {
  seqs: number[];
  /** Keys of the rows that already existed: nearly always none. */
  known: ReadonlySet<string>;
}

/**
 * The key of a body in `inbox.seen`: half of its SHA-256. The bytes alone define a repeat; the event's own time follows
 * from them.
 */
export const keyOf = (sha256: string): string => sha256.slice(0, 32);

/** The upper bits of the locks that inbox.readable_until() reads. */
export const eventNumbers = { sequence: "inbox.event_numbers", lockClass: 7_257 };

/**
 * All bodies are sent as one binary parameter, which the server splits. The driver would hex-encode an array of Buffers
 * and escape an array of texts quote by quote; both cost more than the INSERT. The statement returns one row, since
 * reading many rows costs more than inserting them. It lists the keys of the new rows only if some row was not new,
 * which is rare.
 */
const insertNew = {
  name: "inbox-append",
  text: `
    with input as materialized (
      select i.*, coalesce(i.created_at, '-infinity') as seen_at
      from unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::int[], $7::int[], $10::uuid[])
        with ordinality as i(event_id, type, api_version, created_at, secret_id, body_at, body_length, body, n)
    ), hashes as materialized (
      select decode($9::text, 'hex') as joined
    ), turn as materialized (
      select ${takeTurn(eventNumbers)}
    ), fresh as (
      insert into inbox.seen (created_at, body, seq)
      select seen_at, body, nextval('inbox.event_numbers')
      -- Sorted, so that receivers that insert the same events cannot deadlock.
      from turn cross join (select seen_at, body from input order by seen_at, body) sorted
      on conflict (created_at, body) do nothing
      returning body, seq
    ), stored as (
      insert into inbox.receipts (seq, event_id, raw_sha256, type, api_version, event_created_at, raw, secret_id)
      select f.seq, event_id, substr(joined, (n::int - 1) * 32 + 1, 32), type, api_version, created_at,
             substr($8::bytea, body_at, body_length), secret_id
      from fresh f join input using (body), hashes
    ), opened as (
      insert into inbox.progress (seq) select seq from fresh
    )
    select (select string_agg(seq::text, ',') from fresh) as seqs,
           case when (select count(*) from fresh) < cardinality($1::text[])
             then (select array_agg(encode(uuid_send(body), 'hex')) from fresh)
           end as keys`,
};

/**
 * Inserts the rows that are not stored yet, in one statement, and returns which were new. The rows must be distinct.
 * Idempotent. Uses an open transaction, or its own.
 */
async function insertNewRows(client: ClientBase, rows: readonly PendingRow[]): Promise<NewRows> {
  const { rows: found } = await client.query<{ seqs: string | null; keys: string[] | null }>({
    ...insertNew,
    values: insertValues(rows),
  });
  const { seqs = null, keys = null } = found[0] ?? {};
  if (seqs === null) return { seqs: [], known: new Set(rows.map(({ key }) => key)) };
  return { seqs: seqs.split(",").map(Number), known: keys === null ? noKeys : rest(rows, keys) };
}

const noKeys: ReadonlySet<string> = new Set();

/** The keys of rows that are not among the given ones. */
function rest(rows: readonly PendingRow[], keys: readonly string[]): ReadonlySet<string> {
  const given = new Set(keys);
  return new Set(rows.map(({ key }) => key).filter((key) => !given.has(key)));
}

function insertValues(rows: readonly PendingRow[]): unknown[] {
  const events = rows.map(({ event }) => event);
  const bodies = events.map(({ raw }) => raw);
  const positions: number[] = [];
  let next = 1;
  for (const { length } of bodies) {
    positions.push(next);
    next += length;
  }
  return [
    textArray(events.map(({ eventId }) => eventId)),
    textArray(events.map(({ type }) => type)),
    textArray(events.map(({ apiVersion }) => apiVersion)),
    textArray(events.map(({ createdAt }) => createdAt)),
    textArray(events.map(({ secretId }) => secretId)),
    `{${positions.join(",")}}`,
    `{${bodies.map(({ length }) => length).join(",")}}`,
    Buffer.concat(bodies, next - 1),
    rows.map(({ sha256 }) => sha256).join(""),
    `{${rows.map(({ key }) => key).join(",")}}`,
  ];
}

/**
 * Inserts nothing, but takes the locks and needs the privileges of a real insert. Rejects when it does not get them.
 * For a readiness probe.
 */
export async function insertNoRows(client: ClientBase): Promise<void> {
  await client.query(
    `with fresh as (
       insert into inbox.seen (created_at, body, seq)
       select '-infinity', gen_random_uuid(), nextval('inbox.event_numbers') where false returning seq
     ), stored as (
       insert into inbox.receipts (seq, event_id, raw_sha256, raw, secret_id)
       select seq, '', '', '', '' from fresh
     )
     insert into inbox.progress (seq) select seq from fresh`,
  );
}

/**
 * An array as a parameter. Skips the driver's escaping of each value when no value needs it: nearly always.
 */
function textArray(values: readonly (string | null)[]): string | readonly (string | null)[] {
  const needsCare = values.includes(null) || /["\\]/.test(values.join(""));
  return needsCare ? values : `{"${values.join('","')}"}`;
}

const countRepeats = {
  name: "inbox-count-repeats",
  text: `
    with given as (
      select coalesce(created_at, '-infinity') as created_at, body, times
      from unnest($1::timestamptz[], $2::uuid[], $3::int[]) as i(created_at, body, times)
    ), locked as materialized (
      select created_at, body, times from inbox.seen join given using (created_at, body)
      -- Sorted, so that receivers that count the same repeats cannot deadlock.
      order by created_at, body for update of seen
    )
    update inbox.seen s set repeats = s.repeats + l.times
    from locked l where s.created_at = l.created_at and s.body = l.body`,
};

/** Counts repeated deliveries of rows that are already stored. */
export async function countRepeatedRows(
  client: ClientBase,
  repeats: readonly { row: PendingRow; times: number }[],
): Promise<void> {
  await client.query({
    ...countRepeats,
    values: [
      repeats.map(({ row }) => row.event.createdAt),
      repeats.map(({ row }) => row.key),
      repeats.map(({ times }) => times),
    ],
  });
}

/** A commit would wait for a synchronous standby that does not answer. */
export class CommitsHang extends TallyhookError {}

/**
 * Throws `CommitsHang` while a flush, of any receiver, has waited for a synchronous standby for seconds. Its session
 * keeps waiting after its client has gone, and no time limit ends that. Each further flush would add a session, until
 * the server has no connection left.
 */
export async function assertCommitsEnd(client: ClientBase): Promise<void> {
  const { rows } = await client.query(
    `select from pg_stat_activity
     where datname = current_database() and application_name = current_setting('application_name')
       and wait_event = 'SyncRep' and query_start < clock_timestamp() - interval '4 seconds'
     limit 1`,
  );
  if (rows.length > 0) {
    throw new CommitsHang("commits wait for a synchronous standby that does not answer");
  }
}
