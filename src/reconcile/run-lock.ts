import type { Knex } from "knex";

/** Held by the one run that works now. Any fixed number of our own. */
const reconcileLock = 7_255_011_934;

/**
 * Runs `work` unless another process reconciles this database: then null. The lock belongs to a connection, so it
 * ends with its process, however that ends. No transaction is open meanwhile.
 */
export async function withRunLock<T>(db: Knex, work: () => Promise<T>): Promise<T | null> {
  const client = db.client as {
    acquireConnection(): Promise<unknown>;
    releaseConnection(connection: unknown): Promise<void>;
  };
  const connection = await client.acquireConnection();
  const ask = async (sql: string): Promise<boolean> => {
    const { rows } = await db
      .raw<{ rows: { is_held: boolean }[] }>(sql, [reconcileLock])
      .connection(connection);
    return rows[0]?.is_held === true;
  };
  try {
    if (!(await ask("select pg_try_advisory_lock(?) as is_held"))) return null;
    try {
      return await work();
    } finally {
      // A connection that was lost meanwhile has given the lock up itself.
      await ask("select pg_advisory_unlock(?) as is_held").catch(() => false);
    }
  } finally {
    await client.releaseConnection(connection);
  }
}
