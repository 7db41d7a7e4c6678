import type { Knex } from "knex";
import { sqlArray } from "../../../platform/postgres/values.ts";
import { leftSchemas, leftTables } from "../../database-rights.ts";

/** All tables of the database but the server's own and these schemas', by name; partitions count for their table. */
export async function tablesOf(
  db: Knex,
  without: readonly string[] = leftSchemas,
): Promise<{ name: string; sql: string }[]> {
  const { rows } = await db.raw<{ rows: { name: string; sql: string }[] }>(
    `select n.nspname || '.' || c.relname as name, format('%I.%I', n.nspname, c.relname) as sql
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind in ('r', 'p') and not c.relispartition
       and n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and n.nspname <> all(?::text[])
     order by 1`,
    [sqlArray(without)],
  );
  return rows;
}

/** The rows of every table that a backup without these schemas keeps. Reads all of them. */
export async function countRows(db: Knex, without: readonly string[] = leftSchemas): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { name, sql } of await tablesOf(db, without)) {
    if (leftTables.includes(name)) continue;
    const { rows } = await db.raw<{ rows: { n: string }[] }>(`select count(*) as n from ${sql}`);
    counts[name] = Number(rows[0]?.n ?? 0);
  }
  return counts;
}
