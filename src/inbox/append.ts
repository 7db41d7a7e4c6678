import { hash } from "node:crypto";
import { rowKey } from "./append-statement.ts";
import type { Appended, VerifiedEvent } from "./event.ts";
import { flush, InboxUnavailable, refuse } from "./flush.ts";
import type { Flushed, FlushDeps } from "./flush.ts";
import type { WaitingRow } from "./store-batch.ts";

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
  deps: FlushDeps,
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
