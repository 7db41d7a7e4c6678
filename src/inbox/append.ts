import { hash } from "node:crypto";
import type { Pool, PoolClient } from "pg";
import { TallyhookError } from "../platform/errors.ts";
import type { Log } from "../platform/log.ts";
import { countRepeatedRows, rowKey } from "./append-statement.ts";
import type { Appended, VerifiedEvent } from "./event.ts";
import { storeBatch } from "./store-batch.ts";
import type { WaitingRow } from "./store-batch.ts";

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
  /** For a flush with everything it needs; then it counts as hung. */
  flushTimeoutMs: number;
}

export const defaultAppendLimits: AppendLimits = {
  maxRowsPerFlush: 500,
  maxBytesPerFlush: 4 * 1024 * 1024,
  maxWaitingRows: 5_000,
  maxWaitingBytes: 64 * 1024 * 1024,
  flushTimeoutMs: 5_000,
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

/**
 * Group commit: one INSERT is in flight, whatever arrives meanwhile goes together in the next. There is no
 * timer, so an idle receiver commits at once and a busy one batches by itself. Two flushes in flight were
 * measured to be slower than one. When a flush hangs, all that wait behind it are refused with it: they would
 * only wait for the same.
 */
export function createAppender(
  deps: AppenderDeps,
  limits: AppendLimits = defaultAppendLimits,
): Appender {
  let waiting: WaitingRow[] = [];
  let waitingBytes = 0;
  let flushing: Promise<void> | null = null;
  let closed = false;

  async function flushAll(): Promise<void> {
    while (waiting.length > 0) {
      const hung = await flush(deps, takeBatch(limits), limits.flushTimeoutMs);
      if (hung !== null) refuse(takeBatch(all), hung);
    }
    flushing = null;
  }

  function takeBatch({ maxRowsPerFlush, maxBytesPerFlush }: typeof all): WaitingRow[] {
    let bytes = 0;
    let count = 0;
    for (const { event } of waiting) {
      if (count > 0 && bytes + event.raw.length > maxBytesPerFlush) break;
      if (count === maxRowsPerFlush) break;
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
        const row = { event, sha256: hash("sha256", event.raw, "hex") };
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

const all: Pick<AppendLimits, "maxRowsPerFlush" | "maxBytesPerFlush"> = {
  maxRowsPerFlush: Number.POSITIVE_INFINITY,
  maxBytesPerFlush: Number.POSITIVE_INFINITY,
};

/** Stores one batch, or refuses it. Gives back the error when it took too long. Never throws. */
async function flush(
  deps: AppenderDeps,
  batch: WaitingRow[],
  timeoutMs: number,
): Promise<Error | null> {
  const connection: Connection = { client: undefined, isGivenUp: false };
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Error>((resolve) => {
    timer = setTimeout(() => resolve(new Error(`not stored within ${timeoutMs} ms`)), timeoutMs);
  });
  const hung = await Promise.race([storeAndCount(deps, connection, batch), late]);
  clearTimeout(timer);
  if (hung === null) return null;
  connection.isGivenUp = true;
  deps.log.warn({ err: hung, events: batch.length }, "the database does not answer");
  refuse(batch, hung);
  // Destroyed, not used again: it may still be in the statement. If that commits, the relay finds the events.
  connection.client?.release(hung);
  return hung;
}

interface Connection {
  client: PoolClient | undefined;
  /** Its flush is over: whoever still holds it must not touch it. */
  isGivenUp: boolean;
}

async function storeAndCount(
  { pool, log, onCommitted }: AppenderDeps,
  connection: Connection,
  batch: WaitingRow[],
): Promise<null> {
  let failure: Error | undefined;
  try {
    const client = await pool.connect();
    if (connection.isGivenUp) {
      client.release();
      return null;
    }
    connection.client = client;
    const { seqs, repeats } = await storeBatch({ client, log }, batch);
    if (seqs.length > 0) onCommitted(seqs);
    if (repeats.length > 0) await countRepeatedRows(client, repeats);
  } catch (cause) {
    if (connection.isGivenUp) return null;
    failure = cause instanceof Error ? cause : new Error(String(cause));
    log.warn({ err: failure, events: batch.length }, "a batch of events could not be stored");
    // Rows that were answered already stay answered: only a count of repeats is lost then.
    refuse(batch, failure);
  }
  if (connection.isGivenUp) return null;
  connection.client?.release(failure ?? false);
  connection.client = undefined;
  return null;
}

function refuse(batch: readonly WaitingRow[], cause: unknown): void {
  const error = new InboxUnavailable("The database does not take events.", { cause });
  for (const { reject } of batch) reject(error);
}
