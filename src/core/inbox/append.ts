import { hash } from "node:crypto";
import type { Pool, PoolClient } from "pg";
import { TallyhookError } from "../../platform/errors.ts";
import type { Log } from "../../platform/log.ts";
import {
  type AppendResult,
  CommitsHang,
  type VerifiedEvent,
  type WaitingRow,
  assertCommitsEnd,
  countRepeatedRows,
  keyOf,
  storeBatch,
} from "./store-batch.ts";

export interface AppendLimits {
  maxRowsPerFlush: number;
  maxBytesPerFlush: number;
  maxWaitingRows: number;
  maxWaitingBytes: number;
  /** The time for a whole flush, connecting included. A flush that takes longer counts as hung. */
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
   * Stores one event. Once it resolves, the bytes are committed. Idempotent: a repeat is `duplicate`. Throws
   * `InboxUnavailable` when too many events wait, the database does not answer, or the appender is closing.
   */
  append(event: VerifiedEvent): Promise<AppendResult>;
  /** Refuses new events and waits until all accepted ones are stored or refused. */
  close(): Promise<void>;
}

/**
 * Group commit: one INSERT is in flight, and all events that arrive during it share the next one. There is no timer: an
 * idle receiver commits immediately, and a busy one batches by itself. Measurements showed two flushes in flight to be
 * slower than one. But a flush is sent before the answers of the previous one are written, so that the database and
 * this process work in parallel. When a flush hangs, all events that wait behind it are refused with it, since they
 * would wait for the same database.
 */
export function createAppender(deps: FlushDeps, limits: AppendLimits = defaultAppendLimits): Appender {
  let waiting: WaitingRow[] = [];
  let waitingBytes = 0;
  let flushing: Promise<void> | null = null;
  let closed = false;
  const line: Line = { isDoubtful: false };

  async function flushAll(): Promise<void> {
    let previous: FlushResult = { client: null, finish: () => {}, hung: null };
    while (waiting.length > 0) {
      const flushed = flush(deps, line, previous.client, takeBatch(limits), limits.flushTimeoutMs);
      previous.finish();
      previous = await flushed;
      if (previous.hung !== null) refuse(takeBatch(noLimits), previous.hung);
    }
    previous.finish();
    previous.client?.release();
    flushing = null;
  }

  function takeBatch({ maxRowsPerFlush, maxBytesPerFlush }: typeof noLimits): WaitingRow[] {
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
        waiting.length >= limits.maxWaitingRows || waitingBytes + event.raw.length > limits.maxWaitingBytes;
      if (isFull) return Promise.reject(new InboxUnavailable("Too many events are waiting."));
      return new Promise((resolve, reject) => {
        const sha256 = hash("sha256", event.raw, "hex");
        waiting.push({ event, sha256, key: keyOf(sha256), resolve, reject });
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

const noLimits: Pick<AppendLimits, "maxRowsPerFlush" | "maxBytesPerFlush"> = {
  maxRowsPerFlush: Number.POSITIVE_INFINITY,
  maxBytesPerFlush: Number.POSITIVE_INFINITY,
};

/** The inbox cannot store an event now. Nothing is wrong with the event; the sender should retry. */
export class InboxUnavailable extends TallyhookError {}

export interface FlushDeps {
  /** A small pool of its own with a query time-out. All flushes use one connection of it. */
  pool: Pool;
  log: Log;
  /** Called after every committed batch of new events, once the answers were released. Must not throw. */
  onCommitted(seqs: number[]): void;
}

export interface FlushResult {
  /** The connection for the next flush; null when it was dropped. */
  client: PoolClient | null;
  /** Releases the answers of the stored events and announces them to workers. Must be called once. Never throws. */
  finish(): void;
  /** Set when the flush hung: the reason to refuse all waiting events, too. */
  hung: Error | null;
}

/** Health of the way to the database, over all connections. */
interface Line {
  /** A flush has hung, and none was stored since. */
  isDoubtful: boolean;
}

/** Stores one batch or refuses it. Uses the connection of the previous flush, or a new one. Never throws. */
async function flush(
  deps: FlushDeps,
  line: Line,
  client: PoolClient | null,
  batch: WaitingRow[],
  timeoutMs: number,
): Promise<FlushResult> {
  const connection: FlushConnection = { client, isGivenUp: false };
  let timer: NodeJS.Timeout | undefined;
  const timedOut = new Promise<Error>((resolve) => {
    timer = setTimeout(() => resolve(new Error(`not stored within ${timeoutMs} ms`)), timeoutMs);
  });
  const outcome = await Promise.race([storeAndCount(deps, line, connection, batch), timedOut]);
  clearTimeout(timer);
  if (!(outcome instanceof Error)) return { client: connection.client, finish: outcome, hung: null };
  connection.isGivenUp = true;
  line.isDoubtful = true;
  deps.log.warn({ err: outcome, events: batch.length }, "the database does not answer");
  refuse(batch, outcome);
  // The connection is destroyed, since the statement may still be running. If it commits, the relay finds the events.
  connection.client?.release(outcome);
  return { client: null, finish: () => {}, hung: outcome };
}

interface FlushConnection {
  client: PoolClient | null;
  /** The flush was given up. Code that still holds the connection must not use it. */
  isGivenUp: boolean;
}

/**
 * Stores the batch or refuses it. Returns `finish`, so that the next flush can be sent before the answers are written.
 * A batch with repeats is answered here, and nothing remains to be done: before they are counted where new events were
 * committed with them, and after where all were stored already, since a synchronous standby may lack what another
 * session has stored until this one has committed as well. Never throws.
 */
async function storeAndCount(
  { pool, log, onCommitted }: FlushDeps,
  line: Line,
  connection: FlushConnection,
  batch: WaitingRow[],
): Promise<() => void> {
  const nothing = () => {};
  try {
    if (connection.client === null) {
      const client = await pool.connect();
      if (connection.isGivenUp) {
        client.release();
        return nothing;
      }
      connection.client = client;
    }
    const { client } = connection;
    if (line.isDoubtful) await assertCommitsEnd(client);
    const { seqs, repeats, answer } = await storeBatch({ client, log }, batch);
    line.isDoubtful = false;
    const finish = () => {
      answer();
      if (seqs.length > 0) onCommitted(seqs);
    };
    if (repeats.length === 0) return finish;
    if (seqs.length > 0) finish();
    await countRepeatedRows(client, repeats);
    if (seqs.length === 0 && !connection.isGivenUp) finish();
  } catch (cause) {
    if (connection.isGivenUp) return nothing;
    const failure = cause instanceof Error ? cause : new Error(String(cause));
    log.warn({ err: failure, events: batch.length }, "a batch of events could not be stored");
    // Rows that were already answered stay so. Then nothing but a count of repeats is lost.
    refuse(batch, failure);
    connection.client?.release(failure instanceof CommitsHang ? undefined : failure);
    connection.client = null;
  }
  return nothing;
}

function refuse(batch: readonly WaitingRow[], cause: unknown): void {
  const error = new InboxUnavailable("The database does not accept events.", { cause });
  for (const { reject } of batch) reject(error);
}
