import type { Knex } from "knex";
import { sqlArray } from "../../platform/postgres/values.ts";

/** A customer's name. Personal data. */
export interface CustomerName {
  /** First and last name; empty where the mirror has neither. */
  name: string;
  email: string | null;
}

/** Keyed by id; customers that the mirror lacks are absent. One statement. */
export async function customerNames(db: Knex, ids: readonly string[]): Promise<ReadonlyMap<string, CustomerName>> {
  if (ids.length === 0) return new Map();
  const { rows } = await db.raw<{
    rows: {
      id: string;
      first_name: string | null;
      last_name: string | null;
      email: string | null;
    }[];
  }>(`select id, first_name, last_name, email from mirror.customers where id = any(?::text[])`, [
    sqlArray([...new Set(ids)]),
  ]);
  return new Map(
    rows.map(({ id, first_name: first, last_name: last, email }) => [
      id,
      { name: [first, last].filter((part) => part !== null && part !== "").join(" "), email },
    ]),
  );
}
