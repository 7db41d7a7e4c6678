import type { Knex } from "knex";
import { sqlArray } from "./sql-array.ts";

/** The schemas that the migrations make; a test compares them with a migrated database. */
export const migratedSchemas = [
  "alerts",
  "inbox",
  "mirror",
  "receiver",
  "reconcile",
  "reports",
] as const;

const recordTable = "tallyhook_schema_text";

/** A function, view or trigger. */
export interface TextOfObject {
  kind: string;
  /** With its schema; of a function with its arguments. */
  name: string;
  sha256: string;
}

export interface ChangedObject {
  kind: string;
  name: string;
  change: "changed" | "missing" | "added";
}

/**
 * The text of everything that can be replaced. The server words views and triggers, by settings that every connection
 * brings (session-settings.ts). One statement.
 */
export async function readSchemaText(db: Knex): Promise<TextOfObject[]> {
  const { rows } = await db.raw<{ rows: TextOfObject[] }>(
    `select kind, name, encode(sha256(convert_to(text, 'UTF8')), 'hex') as sha256
     from (
       select 'function' as kind, pg_get_functiondef(p.oid) as text,
              n.nspname || '.' || p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')' as name
       from pg_proc p join pg_namespace n on n.oid = p.pronamespace
       where n.nspname = any(:schemas::text[]) and p.prokind in ('f', 'p')
       union all
       select case c.relkind when 'm' then 'materialized view' else 'view' end,
              concat_ws(' ', pg_get_viewdef(c.oid), c.reloptions::text), n.nspname || '.' || c.relname
       from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where n.nspname = any(:schemas::text[]) and c.relkind in ('v', 'm')
       union all
       -- One that is switched off is another one.
       select 'trigger', concat_ws(' ', pg_get_triggerdef(t.oid), t.tgenabled),
              t.tgname || ' on ' || n.nspname || '.' || c.relname
       from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
       where n.nspname = any(:schemas::text[]) and not t.tgisinternal
     ) objects
     order by kind, name`,
    { schemas: sqlArray(migratedSchemas) },
  );
  return rows;
}

/**
 * Notes what the migrations have just made. What they did not touch keeps the text that was noted before, so that a
 * change by hand is not taken for theirs. `before`: the text as they found it. Needs the migrations' transaction.
 */
export async function recordSchemaText(
  trx: Knex.Transaction,
  before: readonly TextOfObject[],
): Promise<void> {
  if (!(await isRecorded(trx))) return;
  const after = await readSchemaText(trx);
  const { recorded, isOfThisServer } = await readRecord(trx);
  const wanted = isOfThisServer ? textWanted(recorded, before, after) : after;
  await trx(recordTable).delete();
  await trx.raw(
    `insert into ${recordTable} (kind, name, sha256, server_major)
     select kind, name, sha256, current_setting('server_version_num')::int / 10000
     from unnest(?::text[], ?::text[], ?::text[]) o(kind, name, sha256)`,
    [
      wanted.map(({ kind }) => kind),
      wanted.map(({ name }) => name),
      wanted.map(({ sha256 }) => sha256),
    ],
  );
}

/** Pure. */
function textWanted(
  recorded: readonly TextOfObject[],
  before: readonly TextOfObject[],
  after: readonly TextOfObject[],
): TextOfObject[] {
  const [was, is] = [byName(before), byName(after)];
  const wanted = byName(recorded);
  for (const key of new Set([...was.keys(), ...is.keys()])) {
    const now = is.get(key);
    if (now?.sha256 === was.get(key)?.sha256) continue;
    if (now === undefined) wanted.delete(key);
    else wanted.set(key, now);
  }
  return [...wanted.values()];
}

/**
 * What was changed since the migrations made it, by name. Null where nothing can be said: nothing was recorded, or by
 * another major version of the server, and `migrate` records it. Only reads.
 */
export async function changedSchemaText(db: Knex): Promise<ChangedObject[] | null> {
  if (!(await isRecorded(db))) return null;
  const { recorded, isOfThisServer } = await readRecord(db);
  if (!isOfThisServer) return null;
  const [wanted, is] = [byName(recorded), byName(await readSchemaText(db))];
  const changed: ChangedObject[] = [];
  for (const [key, { kind, name, sha256 }] of wanted) {
    const now = is.get(key);
    if (now?.sha256 === sha256) continue;
    changed.push({ kind, name, change: now === undefined ? "missing" : "changed" });
  }
  for (const [key, { kind, name }] of is) {
    if (!wanted.has(key)) changed.push({ kind, name, change: "added" });
  }
  return changed;
}

/** Whether `migrate` should record the text although it has nothing to apply: the server is another one. */
export async function isRecordOutdated(db: Knex): Promise<boolean> {
  return (await isRecorded(db)) && !(await readRecord(db)).isOfThisServer;
}

async function isRecorded(db: Knex): Promise<boolean> {
  const { rows } = await db.raw<{ rows: { there: boolean }[] }>(
    "select to_regclass(?) is not null as there",
    [recordTable],
  );
  return rows[0]?.there === true;
}

async function readRecord(
  db: Knex,
): Promise<{ recorded: TextOfObject[]; isOfThisServer: boolean }> {
  const { rows } = await db.raw<{ rows: (TextOfObject & { is_of_this_server: boolean })[] }>(
    `select kind, name, sha256, server_major = current_setting('server_version_num')::int / 10000 as is_of_this_server
     from ${recordTable} order by kind, name`,
  );
  return {
    recorded: rows.map(({ kind, name, sha256 }) => ({ kind, name, sha256 })),
    isOfThisServer: rows.length > 0 && rows.every((row) => row.is_of_this_server),
  };
}

const byName = (objects: readonly TextOfObject[]): Map<string, TextOfObject> =>
  new Map(objects.map((each) => [`${each.kind} ${each.name}`, each]));
