import type { Pool, PoolClient } from "pg";
import { TallyhookError } from "../platform/errors.ts";
import type { Log } from "../platform/log.ts";
import { countRepeatedRows } from "./append-statement.ts";
import { storeBatch } from "./store-batch.ts";
import type { WaitingRow } from "./store-batch.ts";

/** The inbox cannot take an event now: nothing is wrong with the event, the sender should come again. */
export class InboxUnavailable extends TallyhookError {}

export interface FlushDeps {
  /** Its own small pool with a query time-out: one connection carries all flushes. */
  pool: Pool;
  log: Log;
  /** Told of every committed batch of new events, after the answers were released. Must not throw. */
  onCommitted(seqs: number[]): void;
}

export interface Flushed {
  /** For the next flush; null when it was given up. */
  client: PoolClient | null;
  /** Answers those whose events are stored, and makes them known. Must be called once. Never throws. */
  finish(): void;
  /** Why all that wait are refused too. */
  hung: Error | null;
}

/** Stores one batch, or refuses it, on the connection of the flush before or one of its own. Never throws. */
export async function flush(
  deps: FlushDeps,
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
  { pool, log, onCommitted }: FlushDeps,
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

export function refuse(batch: readonly WaitingRow[], cause: unknown): void {
  const error = new InboxUnavailable("The database does not take events.", { cause });
  for (const { reject } of batch) reject(error);
}
