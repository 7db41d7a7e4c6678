import type { Knex } from "knex";

/**
 * The database's clock, which dated the rows. Removal uses it, so that a machine whose clock is years ahead removes
 * nothing.
 */
export async function databaseNow(db: Knex): Promise<Date> {
  const { rows } = await db.raw<{ rows: [{ now: Date }] }>("select now() as now");
  return rows[0].now;
}
