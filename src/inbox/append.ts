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
 * measured to be slower than one; but a flush is sent before the answers of the one before it are written, so
 * that the database and this process work at the same time. When a flush hangs, all that wait behind it are
 * refused with it: they would only wait for the same.
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
    let before: Flushed = { client: null, finish: () => {}, hung: null };
    while (waiting.length > 0) {
      const flushed = flush(deps, before.client, takeBatch(limits), limits.flushTimeoutMs);
      before.finish();
      before = await flushed;
      if (before.hung !== null) refuse(takeBatch(all), before.hung);
    }
    before.finish();
    before.client?.release();
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

interface Flushed {
  /** For the next flush; null when it was given up. */
  client: PoolClient | null;
  /** Answers those whose events are stored, and makes them known. Must be called once. Never throws. */
  finish(): void;
  /** Why all that wait are refused too. */
  hung: Error | null;
}

/** Stores one batch, or refuses it, on the connection of the flush before or one of its own. Never throws. */
async function flush(
  deps: AppenderDeps,
  client: PoolClient | null,
  batch: WaitingRow[],
  timeoutMs: number,
): Promise<Flushed> {
  const line: Line = { client, isGivenUp: false };
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Error>((resolve) => {
    timer = setTimeout(() => resolve(new Error(`not stored within ${timeoutMs} ms`)), timeoutMs);
  });
  const outcome = await Promise.race([storeAndCount(deps, line, batch), late]);
  clearTimeout(timer);
  if (!(outcome instanceof Error)) return { client: line.client, finish: outcome, hung: null };
  line.isGivenUp = true;
  deps.log.warn({ err: outcome, events: batch.length }, "the database does not answer");
  refuse(batch, outcome);
  // Destroyed, not used again: it may still be in the statement. If that commits, the relay finds the events.
  line.client?.release(outcome);
  return { client: null, finish: () => {}, hung: outcome };
}

interface Line {
  client: PoolClient | null;
  /** Its flush is over: whoever still holds it must not touch it. */
  isGivenUp: boolean;
}

/** Gives back what is left to do once the events are stored. */
async function storeAndCount(
  { pool, log, onCommitted }: AppenderDeps,
  line: Line,
  batch: WaitingRow[],
): Promise<() => void> {
  const nothing = () => {};
  try {
    if (line.client === null) {
      const client = await pool.connect();
      if (line.isGivenUp) {
        client.release();
        return nothing;
      }
      line.client = client;
    }
    const { client } = line;
    const { seqs, repeats, answer } = await storeBatch({ client, log }, batch);
    const finish = () => {
      answer();
      if (seqs.length > 0) onCommitted(seqs);
    };
    if (repeats.length === 0) return finish;
    finish();
    await countRepeatedRows(client, repeats);
  } catch (cause) {
    if (line.isGivenUp) return nothing;
    const failure = cause instanceof Error ? cause : new Error(String(cause));
    log.warn({ err: failure, events: batch.length }, "a batch of events could not be stored");
    // Rows that were answered already stay answered: only a count of repeats is lost then.
    refuse(batch, failure);
    line.client?.release(failure);
    line.client = null;
  }
  return nothing;
}

function refuse(batch: readonly WaitingRow[], cause: unknown): void {
  const error = new InboxUnavailable("The database does not take events.", { cause });
  for (const { reject } of batch) reject(error);
}
