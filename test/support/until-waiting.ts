import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";

/** Waits until so many sessions of this database wait for a lock, and returns their process ids. */
export async function untilWaiting(db: Knex, count = 1): Promise<number[]> {
  for (;;) {
    const { rows } = await db.raw<{ rows: { pid: number }[] }>(
      "select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
    if (rows.length >= count) return rows.map(({ pid }) => pid);
    await sleep(5);
  }
}
