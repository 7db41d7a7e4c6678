import type { Knex } from "knex";
import { tallyhook } from "../platform/command-line.ts";
import { UnreachableError } from "../platform/errors.ts";
import { createDatabase } from "../platform/postgres/pool.ts";
import { liftLimits, tryLock } from "../platform/postgres/transactions.ts";

// A database that was filled from a backup looks complete, and would send people again what they already received. So
// it is marked before the first row, and unmarked in the transaction that notes what the lost system had sent. A
// schema, since the restore wants a database without a table.
const mark = "tallyhook_open_restore";

/** Held by the one restore into a database that is at work. An arbitrary fixed number. */
const restoreLock = 7_255_011_952;

/**
 * Runs a restore's work unless another restore into the database is running: a database that pg_restore fills looks
 * empty until it commits. An open transaction on a connection of its own holds the lock until the work has ended, so
 * `url` leads past a pooler. Throws `UnreachableError` where another one is running, and the work's own errors.
 */
export async function aloneInRestore<T>(url: string, work: () => Promise<T>): Promise<T> {
  const db = createDatabase({ url, poolMax: 1, applicationName: "tallyhook restore" });
  try {
    const trx = await db.transaction();
    try {
      await lockRestores(trx);
      return await work();
    } finally {
      // A connection that was lost has no lock any more, and the work is done or has failed by itself.
      await trx.rollback().catch(() => {});
    }
  } finally {
    await db.destroy();
  }
}

async function lockRestores(trx: Knex.Transaction): Promise<void> {
  // It waits for pg_restore, which may take hours.
  await liftLimits(trx);
  if (await tryLock(trx, restoreLock)) return;
  throw new UnreachableError(
    "Another restore into this database is running. Wait until it is done; if it hangs, end its process and begin " +
      "again (docs/backup.md).",
  );
}

/**
 * Marks a database that is about to be filled, under the lock (`aloneInRestore`). Idempotent. Returns whether it was not
 * marked before.
 */
export async function beginRestore(db: Knex): Promise<boolean> {
  if (await isRestoreOpen(db)) return false;
  await db.raw(`create schema ${mark}`);
  return true;
}

/** Removes the mark. Idempotent. */
export async function endRestore(db: Knex): Promise<void> {
  await db.raw(`drop schema if exists ${mark}`);
}

/** Whether a restore began whose notes were never written. One statement. */
export async function isRestoreOpen(db: Knex): Promise<boolean> {
  const { rows } = await db.raw<{ rows: [{ open: boolean }] }>("select to_regnamespace(?) is not null as open", [mark]);
  return rows[0].open;
}

export const openRestore =
  "A restore of this database ended before it recorded what the lost system had already sent, which would be sent " +
  `again. Run "${tallyhook("restored --taken-at TIME --ran-until TIME")}", or make the database again and restore ` +
  "again (docs/backup.md).";
