import { createHash } from "node:crypto";
import type { Pool, PoolClient } from "pg";
import { TallyhookError } from "../platform/errors.ts";
import type { Log } from "../platform/log.ts";
import type { Appended, VerifiedEvent } from "./event.ts";
import { countRepeatedRows, insertNewRows, rowKey } from "./append-statement.ts";
import type { PendingRow } from "./append-statement.ts";

/** The inbox cannot take an event now: nothing is wrong with the event, the sender should come again. */
export class InboxUnavailable extends TallyhookError {}

export interface AppenderDeps {
  /** Its own small pool with a query time-out: one connection carries all flushes. */
  pool: Pool;
  log: Log;
  /** Told of every committed batch of new events, after the answers were released. Must not throw. */
  onCommitted(seqs: number[]): void;
}

export interface AppendLimits {
  maxRowsPerFlush: number;
  maxBytesPerFlush: number;
  maxWaitingRows: number;
  maxWaitingBytes: number;
}

export const defaultAppendLimits: AppendLimits = {
  maxRowsPerFlush: 500,
  maxBytesPerFlush: 4 * 1024 * 1024,
  maxWaitingRows: 5_000,
  maxWaitingBytes: 64 * 1024 * 1024,
};

export interface Appender {
  /**
   * Stores one event; when it resolves, the bytes are committed. Idempotent: a repeat is `duplicate`.
   * Throws `InboxUnavailable` when the queue is full, the database does not answer, or it is closing.
   */
  append(event: VerifiedEvent): Promise<Appended>;
  /** Refuses new events, waits until those taken are stored or refused. */
  close(): Promise<void>;
}

interface Waiting extends PendingRow {
  key: string;
  resolve(appended: Appended): void;
  reject(error: Error): void;
}

/**
 * Group commit: one INSERT is in flight, whatever arrives meanwhile goes together in the next. There is no
 * timer, so an idle receiver commits at once and a busy one batches by itself. Two flushes in flight were
 * measured to be slower than one.
 */
export function createAppender(
  deps: AppenderDeps,
  limits: AppendLimits = defaultAppendLimits,
): Appender {
  let waiting: Waiting[] = [];
  let waitingBytes = 0;
  let flushing: Promise<void> | null = null;
  let closed = false;

  async function flushAll(): Promise<void> {
    while (waiting.length > 0) {
      const batch = takeBatch();
      await flush(deps, batch);
    }
    flushing = null;
  }

  function takeBatch(): Waiting[] {
    let bytes = 0;
    let count = 0;
    for (const { event } of waiting) {
      if (count > 0 && bytes + event.raw.length > limits.maxBytesPerFlush) break;
      if (count === limits.maxRowsPerFlush) break;
      bytes += event.raw.length;
      count++;
    }
    const batch = waiting.slice(0, count);
    waiting = waiting.slice(count);
    waitingBytes -= bytes;
    return batch;
  }

  return {
    append(event) {
      if (closed) return Promise.reject(new InboxUnavailable("The receiver is shutting down."));
      const isFull =
        waiting.length >= limits.maxWaitingRows ||
        waitingBytes + event.raw.length > limits.maxWaitingBytes;
      if (isFull) return Promise.reject(new InboxUnavailable("Too many events are waiting."));
      return new Promise((resolve, reject) => {
        const sha256 = createHash("sha256").update(event.raw).digest();
        const row = { event, sha256 };
        waiting.push({ ...row, key: rowKey(row), resolve, reject });
        waitingBytes += event.raw.length;
        flushing ??= flushAll();
      });
    },
    async close() {
      closed = true;
      await flushing;
    },
  };
}

async function flush({ pool, log, onCommitted }: AppenderDeps, batch: Waiting[]): Promise<void> {
  let client: PoolClient | undefined;
  let failure: Error | undefined;
  try {
    client = await pool.connect();
    const { seqs, repeats } = await storeBatch(client, log, batch);
    if (seqs.length > 0) onCommitted(seqs);
    if (repeats.length > 0) await countRepeatedRows(client, repeats);
  } catch (cause) {
    failure = cause instanceof Error ? cause : new Error(String(cause));
    log.warn({ err: failure, events: batch.length }, "a batch of events could not be stored");
    // Rows that were answered already stay answered: only a count of repeats is lost then.
    refuse(batch, failure);
  }
  // A connection that failed may still hang in the statement: it is destroyed, not used again.
  client?.release(failure ?? false);
}

function refuse(batch: Waiting[], cause: unknown): void {
  const error = new InboxUnavailable("The database does not take events.", { cause });
  for (const { reject } of batch) reject(error);
}

interface StoredBatch {
  seqs: number[];
  repeats: { row: PendingRow; times: number }[];
}

/** Stores the batch and releases its answers together; of two copies in it, the first is the new one. */
async function storeBatch(client: PoolClient, log: Log, batch: Waiting[]): Promise<StoredBatch> {
  const copies = new Map<string, Waiting[]>();
  for (const row of batch) {
    const known = copies.get(row.key);
    if (known === undefined) copies.set(row.key, [row]);
    else known.push(row);
  }
  const distinct = [...copies.values()].flatMap(([first]) => first ?? []);
  const stored = await insertOrSplit(client, log, distinct);
  const repeats: StoredBatch["repeats"] = [];
  for (const [key, rows] of copies) {
    const isNew = stored.has(key);
    const times = rows.length - (isNew ? 1 : 0);
    const [first] = rows;
    if (first !== undefined && times > 0) repeats.push({ row: first, times });
    rows.forEach((row, n) => {
      row.resolve({ eventId: first?.event.eventId ?? row.event.eventId, duplicate: !isNew || n > 0 });
    });
  }
  return { seqs: [...stored.values()], repeats };
}

/**
 * One statement for all; when the server refuses a value of one row, the batch is halved until that row stands
 * alone, and it is stored without its extracts. Its neighbours do not notice.
 */
async function insertOrSplit(
  client: PoolClient,
  log: Log,
  rows: Waiting[],
): Promise<Map<string, number>> {
  try {
    return await insertNewRows(client, rows);
  } catch (error) {
    if (!isRefusedValue(error)) throw error;
    const [only] = rows;
    if (rows.length === 1 && only !== undefined) return insertBare(client, log, only, error);
    const half = Math.ceil(rows.length / 2);
    const first = await insertOrSplit(client, log, rows.slice(0, half));
    const second = await insertOrSplit(client, log, rows.slice(half));
    return new Map([...first, ...second]);
  }
}

async function insertBare(
  client: PoolClient,
  log: Log,
  row: Waiting,
  refusal: unknown,
): Promise<Map<string, number>> {
  log.warn({ err: refusal }, "an event is stored without its extracts");
  const eventId = `sha256:${row.sha256.toString("hex")}`;
  row.event = { ...row.event, eventId, type: null, apiVersion: null, createdAt: null };
  const stored = await insertNewRows(client, [row]);
  const seq = stored.get(rowKey(row));
  return seq === undefined ? new Map() : new Map([[row.key, seq]]);
}

/** SQLSTATE class 22: data exception. Nothing else is the fault of a value. */
function isRefusedValue(error: unknown): boolean {
  const code = (error as { code?: unknown }).code;
  return typeof code === "string" && code.startsWith("22");
}
