import type { Knex } from "knex";

/** What the last sweep left under this name; null where none did. */
export async function readMark<T>(db: Knex, name: string): Promise<T | null> {
  const row = await db("alerts.marks").where({ name }).first<{ value: T } | undefined>("value");
  return row?.value ?? null;
}

/** Leaves something for the next sweep. */
export async function writeMark(db: Knex, name: string, value: object): Promise<void> {
  await db("alerts.marks")
    .insert({ name, value: JSON.stringify(value), updated_at: db.fn.now() })
    .onConflict("name")
    .merge();
}
