import type { Knex } from "knex";

/**
 * A transaction that throws what its work threw. Knex throws the error of the rollback instead, when the server has
 * ended the connection together with the statement, as `transaction_timeout` (25P04) makes it do.
 */
export async function inTransaction<T>(
  db: Knex,
  work: (trx: Knex.Transaction) => Promise<T>,
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
    });
  } catch (error) {
    throw thrown === undefined ? error : thrown.error;
  }
}
