import type { Knex } from "knex";

/** What empties the tables, by connection pool and tables: looked up once. */
const statements = new WeakMap<Knex, Map<string, string>>();

/**
 * Leaves no row in the tables, nor in those that refer to them. Past all triggers, as TRUNCATE would, which makes new
 * files for each table and index: forty times the work for a test's few rows.
 */
export async function emptyTables(
  db: Knex,
  tables: readonly string[],
  { numbersRestart = false }: { numbersRestart?: boolean } = {},
): Promise<void> {
  const known = statements.get(db) ?? new Map<string, string>();
  statements.set(db, known);
  const key = `${tables.join(",")} ${numbersRestart}`;
  const statement = known.get(key) ?? (await statementOf(db, tables, numbersRestart));
  known.set(key, statement);
  await db.raw(statement);
}

/** Without values, it is sent as one message, and is one transaction. */
async function statementOf(db: Knex, tables: readonly string[], numbersRestart: boolean): Promise<string> {
  const { rows } = await db.raw<{ rows: { name: string; sequences: string[] }[] }>(
    `with recursive affected as (
       select unnest(?::text[])::regclass as name
       union
       select conrelid::regclass from pg_constraint join affected on confrelid = name where contype = 'f'
     )
     select name::text, array(
       select objid::regclass::text from pg_depend
       where refobjid = name and classid = 'pg_class'::regclass
         and exists (select from pg_sequence where seqrelid = objid)
     ) as sequences
     from affected`,
    [[...tables]],
  );
  const restarts = rows.flatMap(({ sequences }) => sequences.map((name) => `select setval('${name}', 1, false)`));
  return [
    "set local session_replication_role = replica",
    ...rows.map(({ name }) => `delete from ${name}`),
    ...(numbersRestart ? restarts : []),
    "set local session_replication_role = origin",
  ].join(";\n");
}
