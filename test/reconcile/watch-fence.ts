import { AsyncLocalStorage } from "node:async_hooks";
import type { Knex } from "knex";

interface Statement {
  sql: string;
  /** Its connection. */
  __knexUid: string;
}

const isWrite = (sql: string): boolean =>
  /\b(insert into|delete from|merge into|truncate)\b|\bupdate\s+\S+(\s+(as\s+)?\w+)?\s+set\b/i.test(sql) &&
  !/^\s*create temp table/i.test(sql);

/** The proof with which the holder of a lease begins each of its transactions. */
const isProof = (sql: string): boolean => /from reconcile\.leases\s.*for key share/s.test(sql);
const isOfLease = (sql: string): boolean => /\breconcile"?\."?leases\b/.test(sql);

/** Does a run's work, and throws if it wrote anything in a transaction that had not proved its lease. */
export async function watchFence<T>(db: Knex, work: () => Promise<T>): Promise<T> {
  // Tests write, too, while a run is at work.
  const ofRun = new AsyncLocalStorage<true>();
  const proved = new Set<string>();
  const outside: string[] = [];
  const note = ({ sql, __knexUid: connection }: Statement): void => {
    if (ofRun.getStore() !== true) return;
    if (/^(begin|commit|rollback);?$/i.test(sql)) proved.delete(connection);
    else if (isProof(sql)) proved.add(connection);
    else if (isWrite(sql) && !isOfLease(sql) && !proved.has(connection)) outside.push(sql);
  };
  db.on("query", note);
  try {
    const result = await ofRun.run(true, work);
    if (outside.length > 0) throw new Error(`written outside the fence: ${outside.join("; ")}`);
    return result;
  } finally {
    db.off("query", note);
    // Otherwise each promise that this process makes from now on would be told of this run, and of each later one.
    ofRun.disable();
  }
}
