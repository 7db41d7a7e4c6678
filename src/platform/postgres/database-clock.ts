import type { Knex } from "knex";

/** The database's clock, which dated the rows. What is removed goes by it: a machine years ahead removes nothing. */
export async function databaseNow(db: Knex): Promise<Date> {
  const { rows } = await db.raw<{ rows: [{ now: Date }] }>("select now() as now");
  return rows[0].now;
}
