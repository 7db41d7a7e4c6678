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

/** Limits that end a transaction under any setting of role, database and server. */
export interface TransactionLimits {
  statementMs: number;
  /** Longest wait for one lock; null: that of role and database. */
  lockMs: number | null;
  /** Counted from the statement that sets it. Also the longest pause between two statements. */
  transactionMs: number;
}

/**
 * A list for `select` that limits the transaction, with the fields of `TransactionLimits` as bindings. Where a role or
 * database has a limit, BEGIN starts its timer, and PostgreSQL 17 and 18 change a running timer only by way of 0
 * (`assign_transaction_timeout`). Once the limit is ours, its timer runs on. Older servers lack `transaction_timeout`:
 * they limit each statement and each pause between statements, but not their sum. Idempotent within a transaction.
 */
export const settingLimits = `
  set_config('statement_timeout', :statementMs::text, true),
  set_config('lock_timeout', coalesce(:lockMs::text, current_setting('lock_timeout')), true),
  set_config('idle_in_transaction_session_timeout', :transactionMs::text, true),
  case when current_setting('server_version_num')::int >= 170000
            and current_setting('transaction_timeout') <> set_config('transaction_timeout', :transactionMs::text, true)
       then set_config('transaction_timeout', '0', true) || set_config('transaction_timeout', :transactionMs::text, true) end`;

/** Limits the transaction from now on. One statement. */
export async function limitTransaction(trx: Knex.Transaction, limits: TransactionLimits): Promise<void> {
  await trx.raw(`select ${settingLimits}`, { ...limits });
}

/**
 * Lifts what role, database or server set against long transactions, for one that waits for another program or reads
 * whole tables. Waits for locks stay as they are. One statement, the first that may.
 */
export async function liftLimits(trx: Knex.Transaction): Promise<void> {
  // Some versions lack some of them.
  await trx.raw(
    `select set_config(name, '0', true) from pg_settings
     where name in ('statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`,
  );
}

/** Takes an advisory lock until the transaction ends. Returns false where another transaction holds it. */
export async function tryLock(trx: Knex.Transaction, key: number): Promise<boolean> {
  const { rows } = await trx.raw<{ rows: [{ held: boolean }] }>("select pg_try_advisory_xact_lock(?) as held", [key]);
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
 * the caller `waitsForLocks`: it has already waited, and so has everything in its transaction.
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
