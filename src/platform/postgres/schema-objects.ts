import type { Knex } from "knex";
import { tallyhook } from "../command-line.ts";
import { ConfigurationError } from "../errors.ts";
import { errorCode } from "./errors.ts";
import { type SqlFile, runSqlFile } from "./sql-file.ts";
import { sqlArray } from "./values.ts";

/** The schemas of this program; a test compares them with a migrated database. */
export const migratedSchemas = [
  "alerts",
  "dispatch",
  "feed",
  "inbox",
  "mirror",
  "people",
  "receiver",
  "reconcile",
  "reports",
] as const;

const recordTable = "tallyhook_schema_objects";
/** Every text that a file ever had here, in the order of their first use: which of two is the newer one. */
const textTable = "tallyhook_schema_texts";

/** A function, view or trigger. */
export interface SchemaObject {
  kind: string;
  /** With its schema; a function with its arguments, a trigger with its table. */
  name: string;
}

/** An object as the database has it, with the hash of its definition as the server prints it. */
export interface LiveObject extends SchemaObject {
  sha256: string;
}

export interface ChangedObject extends SchemaObject {
  change: "changed" | "missing" | "added";
}

/** The owner of a set of files. One owner's files never drop what another's made. */
export type Owner = "program" | "merchant";

interface RecordedObject extends LiveObject {
  owner: Owner;
  file: string;
  file_sha256: string;
  server_major: number;
}

/**
 * Replaces the functions, views and triggers whose file has changed, and those that were changed or dropped by hand.
 * Drops those that no file defines any more. Files run in their order. An object that keeps its arguments and columns
 * is replaced in place, so that grants and dependent objects of others stay. Returns the names of the files that were
 * run. Idempotent. Throws `ConfigurationError` where an object must be dropped and a foreign object depends on it; the
 * message names the foreign one. Needs the migration's transaction.
 */
export async function replaceObjects(
  trx: Knex.Transaction,
  files: readonly SqlFile[],
  owner: Owner,
): Promise<string[]> {
  await trx.raw(
    `create table if not exists ${recordTable} (
       owner text not null,
       kind text collate "C" not null,
       name text collate "C" not null,
       file text not null,
       file_sha256 text not null,
       sha256 text not null,
       -- Hashes compare within one major version only: each prints views and triggers in its own way.
       server_major integer not null,
       primary key (kind, name)
     )`,
  );
  const all = await readRecord(trx);
  refuseEmptyOrRepeated(files, all, owner);
  await recordTexts(trx, all, files);
  const recorded = all.filter((each) => each.owner === owner);
  const major = await serverMajor(trx);
  const before = byKey(await readLiveObjects(trx, schemasOf(files.flatMap(declaredObjects))));
  const run = files.filter((file) => !isUnchanged(file, recorded, before, major));
  // A database of version 0.1 has no record: objects with our names are ours.
  const made = recorded.length > 0 ? recorded : [...before.values()];
  for (const file of run) await replaceFile(trx, file, made);
  const declared = new Set(files.flatMap(declaredNames));
  const dropped = recorded.filter((each) => !declared.has(nameOf(each)));
  for (const each of dropped.toReversed()) await dropObject(trx, each);
  const isOutdated = recorded.some((each) => each.server_major !== major);
  if (run.length > 0 || dropped.length > 0 || isOutdated) await record(trx, files, owner, major);
  return run.map(({ name }) => name);
}

/**
 * Names of files whose objects were never made, or were made from an older text. A newer text than the file's belongs
 * to a newer version, which this one may run with until it is replaced. Only reads.
 */
export async function pendingObjects(db: Knex, files: readonly SqlFile[]): Promise<string[]> {
  const recorded = new Map((await readRecord(db)).map((each) => [each.file, each.file_sha256]));
  const generations = await readGenerations(db);
  const isPending = ({ name, sha256 }: SqlFile): boolean => {
    const made = recorded.get(name);
    if (made === sha256) return false;
    const ours = generations.get(`${name} ${sha256}`);
    if (ours === undefined) return true;
    // Without objects: a newer version has dropped them.
    return made !== undefined && (generations.get(`${name} ${made}`) ?? 0) < ours;
  };
  return files.filter(isPending).map(({ name }) => name);
}

/** Notes the texts that objects were made from, and then those of the files. Idempotent. */
async function recordTexts(
  trx: Knex.Transaction,
  recorded: readonly RecordedObject[],
  files: readonly SqlFile[],
): Promise<void> {
  await trx.raw(
    `create table if not exists ${textTable} (
       generation bigint generated always as identity primary key,
       file text not null,
       file_sha256 text not null,
       unique (file, file_sha256)
     )`,
  );
  const former = recorded.map(({ file, file_sha256: sha256 }) => ({ name: file, sha256 }));
  for (const texts of [former, files]) {
    await trx.raw(
      `insert into ${textTable} (file, file_sha256)
       select distinct t.name, t.sha256 from jsonb_to_recordset(?::jsonb) as t(name text, sha256 text)
       where not exists (select from ${textTable} k where k.file = t.name and k.file_sha256 = t.sha256)`,
      [JSON.stringify(texts.map(({ name, sha256 }) => ({ name, sha256 })))],
    );
  }
}

/** Keyed by file and hash. */
async function readGenerations(db: Knex): Promise<ReadonlyMap<string, number>> {
  if (!(await tableExists(db, textTable))) return new Map();
  const rows = await db<{ generation: string; file: string; file_sha256: string }>(textTable);
  return new Map(rows.map(({ generation, file, file_sha256 }) => [`${file} ${file_sha256}`, Number(generation)]));
}

/**
 * Names of objects that were changed since `migrate` made them. Null where this is unknown: no definition was recorded,
 * or another major version of the server recorded it; `migrate` records it again. Only reads.
 */
export async function changedObjects(db: Knex): Promise<ChangedObject[] | null> {
  const recorded = await readRecord(db);
  const major = await serverMajor(db);
  if (recorded.length === 0 || recorded.some((each) => each.server_major !== major)) return null;
  const live = byKey(await readLiveObjects(db, schemasOf(recorded)));
  const changed: ChangedObject[] = [];
  for (const { kind, name, sha256 } of recorded) {
    const now = live.get(keyOf({ kind, name }));
    if (now?.sha256 === sha256) continue;
    changed.push({ kind, name, change: now === undefined ? "missing" : "changed" });
  }
  const ours = byKey(recorded);
  for (const [key, { kind, name }] of live) {
    const isInOurSchemas = (migratedSchemas as readonly string[]).includes(schemaOf({ kind, name }));
    if (!ours.has(key) && isInOurSchemas) changed.push({ kind, name, change: "added" });
  }
  return changed;
}

/**
 * All replaceable objects in these schemas. The server prints views and triggers according to settings that every
 * connection brings (session-settings.ts). One statement.
 */
export async function readLiveObjects(db: Knex, schemas: readonly string[] = migratedSchemas): Promise<LiveObject[]> {
  const { rows } = await db.raw<{ rows: LiveObject[] }>(
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
       -- A disabled trigger counts as changed.
       select 'trigger', concat_ws(' ', pg_get_triggerdef(t.oid), t.tgenabled),
              t.tgname || ' on ' || n.nspname || '.' || c.relname
       from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
       where n.nspname = any(:schemas::text[]) and not t.tgisinternal
     ) objects
     order by kind, name`,
    { schemas: sqlArray(schemas) },
  );
  return rows;
}

/** Kinds and names of the objects that a file defines, without arguments. */
function declaredObjects({ text }: Pick<SqlFile, "text">): SchemaObject[] {
  const statements = text.matchAll(
    /^create (?:or replace (function|view) ([a-z_.]+)|(?:or replace|constraint) trigger ([a-z_]+)[^;]*? on ([a-z_.]+))/gm,
  );
  return [...statements].map(([, kind, name, trigger, table]) =>
    kind === undefined ? { kind: "trigger", name: `${trigger} on ${table}` } : { kind, name: name ?? "" },
  );
}

const declaredNames = (file: SqlFile): string[] => declaredObjects(file).map(nameOf);

/** Without arguments: function names are unique. */
const nameOf = ({ kind, name }: SchemaObject): string => `${kind} ${name.replace(/\(.*$/s, "")}`;
const keyOf = ({ kind, name }: SchemaObject): string => `${kind} ${name}`;
const byKey = <T extends SchemaObject>(objects: readonly T[]): Map<string, T> =>
  new Map(objects.map((each) => [keyOf(each), each]));

const schemaOf = ({ name }: SchemaObject): string => name.replace(/^.* on /, "").replace(/\..*$/s, "");
const schemasOf = (objects: readonly SchemaObject[]): string[] => [
  ...new Set([...migratedSchemas, ...objects.map(schemaOf)]),
];

/** Refuses a file without a definition, and an object that two files define. */
function refuseEmptyOrRepeated(files: readonly SqlFile[], recorded: readonly RecordedObject[], owner: Owner): void {
  const makers = new Map(recorded.filter((each) => each.owner !== owner).map((each) => [nameOf(each), each.file]));
  for (const file of files) {
    const names = declaredNames(file);
    if (names.length === 0) {
      throw new ConfigurationError(
        `${file.name} defines nothing: a line of it has to begin with "create or replace function" (or view, or trigger).`,
      );
    }
    for (const name of names) {
      const other = makers.get(name);
      if (other !== undefined) {
        throw new ConfigurationError(`${file.name} defines ${name}, which ${other} already defines.`);
      }
      makers.set(name, file.name);
    }
  }
}

/** Whether all objects of a file exist unchanged and were made from this very text. */
function isUnchanged(
  file: SqlFile,
  recorded: readonly RecordedObject[],
  live: ReadonlyMap<string, LiveObject>,
  major: number,
): boolean {
  return declaredNames(file).every((name) => {
    const made = recorded.find((each) => nameOf(each) === name);
    if (made === undefined || made.file_sha256 !== file.sha256) return false;
    const now = live.get(keyOf(made));
    return now !== undefined && (made.server_major !== major || now.sha256 === made.sha256);
  });
}

/**
 * Objects that cannot be replaced in place: a function with other arguments or results, a view with other columns, a
 * constraint trigger.
 */
const needsDrop: readonly string[] = ["42P13", "42P16", "42725", "42710"];

async function replaceFile(trx: Knex.Transaction, file: SqlFile, known: readonly LiveObject[]): Promise<void> {
  const names = declaredNames(file);
  const made = known.filter((each) => names.includes(nameOf(each)));
  try {
    await trx.transaction((savepoint) => runSqlFile(savepoint, file));
  } catch (error) {
    if (!needsDrop.includes(errorCode((error as Error).cause) ?? "")) throw error;
    for (const each of made.toReversed()) await dropObject(trx, each);
    await runSqlFile(trx, file);
    return;
  }
  // A function with other arguments is a new function, which replaces this one.
  const live = await readLiveObjects(trx, schemasOf(made));
  for (const each of made.filter(({ kind }) => kind === "function")) {
    const namesakes = live.filter((other) => nameOf(other) === nameOf(each));
    if (namesakes.length > 1) await dropObject(trx, each);
  }
}

async function dropObject(trx: Knex.Transaction, { kind, name }: SchemaObject): Promise<void> {
  try {
    await trx.raw(`drop ${kind} if exists ${name}`);
  } catch (error) {
    if (errorCode(error) !== "2BP01") throw error;
    const { detail = "" } = error as { detail?: string };
    throw new ConfigurationError(
      `This version drops ${kind} ${name}, and an object that is not ours depends on it: ${detail}. Drop that ` +
        `object, run "${tallyhook("migrate")}" again, then create it again.`,
      { cause: error },
    );
  }
}

async function record(trx: Knex.Transaction, files: readonly SqlFile[], owner: Owner, major: number): Promise<void> {
  const fileOf = new Map(files.flatMap((file) => declaredNames(file).map((name) => [name, file])));
  const rows = (await readLiveObjects(trx, schemasOf(files.flatMap(declaredObjects)))).flatMap(
    ({ kind, name, sha256 }) => {
      const file = fileOf.get(nameOf({ kind, name }));
      if (file === undefined) return [];
      const made = { file: file.name, file_sha256: file.sha256, server_major: major };
      return [{ owner, kind, name, sha256, ...made }];
    },
  );
  await trx(recordTable).where({ owner }).delete();
  if (rows.length > 0) await trx(recordTable).insert(rows);
}

async function readRecord(db: Knex): Promise<RecordedObject[]> {
  return (await tableExists(db, recordTable)) ? db<RecordedObject>(recordTable).orderBy(["kind", "name"]) : [];
}

export async function tableExists(db: Knex, name: string): Promise<boolean> {
  const { rows } = await db.raw<{ rows: { there: boolean }[] }>("select to_regclass(?) is not null as there", [name]);
  return rows[0]?.there === true;
}

async function serverMajor(db: Knex): Promise<number> {
  const { rows } = await db.raw<{ rows: { major: number }[] }>(
    "select current_setting('server_version_num')::int / 10000 as major",
  );
  return rows[0]?.major ?? 0;
}
