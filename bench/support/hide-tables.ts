import type { ClientBase } from "pg";

const hidden = ["transactions", "subscriptions", "customers"];

/**
 * Runs the work on a mirror whose other tables than `orders` are empty: the reconciliation's service lists only orders,
 * and unlisted objects would be read one by one.
 */
export async function hidingOtherTables<T>(client: ClientBase, work: () => Promise<T>): Promise<T> {
  for (const table of hidden) {
    await client.query(`alter table mirror.${table} rename to ${table}_hidden`);
    await client.query(`create table mirror.${table} (like mirror.${table}_hidden including all)`);
  }
  try {
    return await work();
  } finally {
    for (const table of hidden) {
      await client.query(`drop table mirror.${table}`);
      await client.query(`alter table mirror.${table}_hidden rename to ${table}`);
    }
  }
}
