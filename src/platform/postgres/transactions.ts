import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";
import type { Random } from "../random.ts";

/**
 * A transaction that throws the error of its work. Where the server ended the connection together with the statement,
 * as `transaction_timeout` (25P04) does, Knex throws the error of the rollback instead.
 */
export async function inTransaction<T>(
  db: Knex,
  work: (trx: Knex.Transaction) => Promise<T>,
  config: Knex.TransactionConfig = {},
): Promise<T> {
  let thrown: { error: unknown } | undefined;
  try {
    return await db.transaction(async (trx) => {
      try {
        return await work(trx);
      } catch (error) {
        thrown = { error };
        throw error;
      }
    }, config);
  } catch (error) {
    throw thrown === undefined ? error : thrown.error;
  }
}

/** Takes an advisory lock until the transaction ends. Returns false where another transaction holds it. */
export async function tryLock(trx: Knex.Transaction, key: number): Promise<boolean> {
  const { rows } = await trx.raw<{ rows: [{ held: boolean }] }>(
    "select pg_try_advisory_xact_lock(?) as held",
    [key],
  );
  return rows[0].held;
}

/** 40P01 deadlock, 40001 serialization failure, 55P03 lock time-out: a retry can succeed. */
export function isRetryableConflict(error: unknown): boolean {
  const code = (error as { code?: unknown }).code;
  return code === "40P01" || code === "40001" || code === "55P03";
}

/** The second is that of a caller that waits for locks: 50 s, at two seconds a try (`defaultWriterLimits`). */
const [maxTries, maxLockTries] = [5, 25];

/**
 * Repeats a whole transaction that failed because of a concurrent one. A lock time-out (55P03) is not repeated unless
 * the caller `waitsForLocks`: it has waited already, and whatever shares its transaction waits with it.
 */
export async function retryOnConflict<T>(
  { random }: { random: Random },
  transaction: () => Promise<T>,
  { waitsForLocks = false }: { waitsForLocks?: boolean } = {},
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await transaction();
    } catch (error) {
      const tries = isLockTimeout(error) ? (waitsForLocks ? maxLockTries : 1) : maxTries;
      if (attempt >= tries || !isRetryableConflict(error)) throw error;
      await sleep(20 * Math.min(attempt, maxTries) * (1 + random()));
    }
  }
}

const isLockTimeout = (error: unknown): boolean => (error as { code?: unknown }).code === "55P03";
