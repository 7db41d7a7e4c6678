import { createHash } from "node:crypto";
import { readFile, readdir } from "node:fs/promises";
import { relative } from "node:path/posix";
import type { Knex } from "knex";
import { ConfigurationError } from "../errors.ts";
import { errorCode, isOutage } from "./errors.ts";
import { sqlArray } from "./values.ts";

/** The parts of a database schema. Each part may depend on those before it. */
export interface Schema {
  /** A folder of numbered files: tables, indexes, reference rows. Each is applied once and never changed afterwards. */
  migrations: URL;
  /** Files of functions, views and triggers. A file is applied again when its text changes. */
  objects: readonly URL[];
  /** The merchant's own numbered files. The folder may be missing. */
  ownMigrations: URL;
  /** The merchant's own functions and views. */
  ownObjects: readonly URL[];
}

/** What `migrateToLatest` did, as file names. */
export interface Migrated {
  applied: string[];
  replaced: string[];
}

/** `migrations/` beside `src/`, or `dist/migrations/` beside `dist/src/`: the same depth in both. */
export const migrationsFolder = new URL("../../../migrations/", import.meta.url);
export const ownMigrationsFolder = new URL("own/", migrationsFolder);
/** The merchant's files begin with it, so that their numbers never collide with ours. */
const ownPrefix = "own/";
const ledger = "tallyhook_migrations";
/** The key of the advisory lock that is held while the schema changes. Any fixed number of our own. */
const advisoryLock = 7_255_011_932;
const liftedLimits = [
  "statement_timeout",
  "lock_timeout",
  "idle_in_transaction_session_timeout",
  "transaction_timeout",
];

/**
 * Brings the schema up to date: applies the numbered files that the database lacks, then the functions, views and
 * triggers whose text differs from the program's. All of it is one transaction under an advisory lock: a crash leaves
 * no partial change and no lock, and of two processes that migrate at once the second finds nothing to do. No time
 * limit applies. Idempotent. Throws `ConfigurationError` with file and line where a statement is refused, and when a
 * newer version has migrated the database.
 */
export async function migrateToLatest(db: Knex, schema: Schema): Promise<Migrated> {
  return db.transaction(async (trx) => {
    // Operators limit statements to protect others; a migration takes as long as it takes.
    await trx.raw(
      "select set_config(name, '0', true) from pg_settings where name = any(?::text[])",
      [liftedLimits],
    );
    await trx.raw("select pg_advisory_xact_lock(?)", [advisoryLock]);
    await makeLedger(trx, schema.migrations);
    await refuseNewerSchema(trx, schema.migrations);
    const applied = await applyNumbered(trx, schema.migrations);
    const replaced = await replaceObjects(trx, await readFiles(schema.objects), "program");
    applied.push(...(await applyNumbered(trx, schema.ownMigrations, ownPrefix)));
    replaced.push(...(await replaceObjects(trx, await readFiles(schema.ownObjects), "merchant")));
    return { applied, replaced };
  });
}

/** Names of the numbered files that the database lacks, oldest first. Only reads. */
export async function pendingMigrations(
  db: Knex,
  { migrations, ownMigrations }: Pick<Schema, "migrations" | "ownMigrations"> = {
    migrations: migrationsFolder,
    ownMigrations: ownMigrationsFolder,
  },
): Promise<string[]> {
  const own = await migrationNames(ownMigrations);
  const known = [...(await migrationNames(migrations)), ...own.map((name) => ownPrefix + name)];
  const applied = new Set(await appliedMigrations(db));
  return known.filter((name) => !applied.has(name));
}

/** Names of applied migrations that this version does not know. Merchants may delete theirs. Only reads. */
export async function newerMigrations(
  db: Knex,
  migrations: URL = migrationsFolder,
): Promise<string[]> {
  const known = new Set(await migrationNames(migrations));
  const applied = await appliedMigrations(db);
  return applied.filter((name) => !known.has(name) && !name.startsWith(ownPrefix));
}

/** The first names of a list, and how many more there are. */
export function someOf(names: readonly string[]): string {
  const shown = 3;
  const more = names.length - shown;
  return names.slice(0, shown).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

async function applyNumbered(trx: Knex.Transaction, folder: URL, prefix = ""): Promise<string[]> {
  const done = new Set(await appliedMigrations(trx));
  const pending = (await migrationNames(folder)).filter((name) => !done.has(prefix + name));
  for (const name of pending) {
    await runSqlFile(trx, await readSqlFile(new URL(`${name}.sql`, folder)));
    await trx(ledger).insert({ name: prefix + name });
  }
  return pending.map((name) => prefix + name);
}

const readFiles = (urls: readonly URL[]) => Promise.all(urls.map((url) => readSqlFile(url)));

/** File names without their ending, in order. */
async function migrationNames(folder: URL): Promise<string[]> {
  try {
    const files = (await readdir(folder)).filter((file) => /^\d{4}_.+\.sql$/.test(file));
    return files.sort().map((file) => file.slice(0, -".sql".length));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

async function appliedMigrations(db: Knex): Promise<string[]> {
  return (await hasTable(db, ledger)) ? db(ledger).orderBy("id").pluck<string[]>("name") : [];
}

async function refuseNewerSchema(db: Knex, migrations: URL): Promise<void> {
  const unknown = await newerMigrations(db, migrations);
  if (unknown.length > 0) {
    throw new ConfigurationError(
      `The database was migrated by a newer version of Tallyhook (it has ${someOf(unknown)}). ` +
        "Run that version or a later one, or use another database.",
    );
  }
}

/** The last migration of version 0.1. */
const lastOfVersion01 = "0054_open_lists_read";

/**
 * Version 0.1 had 43 migrations and recorded them in knex's own table. The first numbered files make the same schema,
 * so they are recorded as applied. A database that is not at the last of the 43 must be brought there first.
 */
async function makeLedger(trx: Knex.Transaction, migrations: URL): Promise<void> {
  const isOfVersion01 = await hasTable(trx, `${ledger}_lock`);
  if (isOfVersion01) {
    const applied = await appliedMigrations(trx);
    if (!applied.includes(lastOfVersion01)) {
      throw new ConfigurationError(
        `The database has the tables of an early version (up to ${applied.at(-1) ?? "none"}). ` +
          'Run "tallyhook migrate" of version 0.1.0 first, then that of this version.',
      );
    }
    await trx.raw(`drop table ${ledger}, ${ledger}_lock, tallyhook_schema_text`);
  }
  await trx.raw(
    `create table if not exists ${ledger} (
       id bigint generated always as identity primary key,
       name text not null unique,
       applied_at timestamptz not null default now()
     )`,
  );
  if (isOfVersion01) {
    await runSqlFile(trx, await readSqlFile(new URL("from-version-0.1.sql", migrations)));
  }
}

async function hasTable(db: Knex, name: string): Promise<boolean> {
  const { rows } = await db.raw<{ rows: { there: boolean }[] }>(
    "select to_regclass(?) is not null as there",
    [name],
  );
  return rows[0]?.there === true;
}

/** The schemas of this program; a test compares them with a migrated database. */
export const migratedSchemas = [
  "alerts",
  "inbox",
  "mirror",
  "receiver",
  "reconcile",
  "reports",
] as const;

const recordTable = "tallyhook_schema_objects";

/** A function, view or trigger. */
export interface SchemaObject {
  kind: string;
  /** With its schema; a function with its arguments, a trigger with its table. */
  name: string;
}

/** An object in the database, with the hash of its definition as the server prints it. */
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
 * Replaces the functions, views and triggers whose file has changed, and those that somebody changed or dropped by
 * hand. Drops those that no file defines any more. Files run in their order. An object that keeps its arguments and
 * columns is replaced in place, so that grants and dependent objects of others stay. Returns the names of the files
 * that were run. Idempotent. Throws `ConfigurationError` where an object must be dropped and another one of somebody
 * else's depends on it; the message names that one. Needs the migration's transaction.
 */
async function replaceObjects(
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
       -- The server words views and triggers; another major version may word them otherwise.
       server_major integer not null,
       primary key (kind, name)
     )`,
  );
  const all = await readRecord(trx);
  refuseUnclear(files, all, owner);
  const recorded = all.filter((each) => each.owner === owner);
  const major = await serverMajor(trx);
  const before = byKey(await readLiveObjects(trx, schemasOf(files.flatMap(declaredObjects))));
  const run = files.filter((file) => !isAsMade(file, recorded, before, major));
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

/** Names of files whose objects were never made, or were made from another text. Only reads. */
export async function pendingObjects(db: Knex, files: readonly SqlFile[]): Promise<string[]> {
  const recorded = new Map((await readRecord(db)).map((each) => [each.file, each.file_sha256]));
  return files.filter(({ name, sha256 }) => recorded.get(name) !== sha256).map(({ name }) => name);
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
    const isInOurSchemas = (migratedSchemas as readonly string[]).includes(
      schemaOf({ kind, name }),
    );
    if (!ours.has(key) && isInOurSchemas) changed.push({ kind, name, change: "added" });
  }
  return changed;
}

/**
 * All replaceable objects in these schemas. The server prints views and triggers according to settings that every
 * connection brings (session-settings.ts). One statement.
 */
export async function readLiveObjects(
  db: Knex,
  schemas: readonly string[] = migratedSchemas,
): Promise<LiveObject[]> {
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
       -- One that is switched off is another one.
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

/** Kind and name of the object that a file defines, without arguments. Pure. */
function declaredObjects({ text }: Pick<SqlFile, "text">): SchemaObject[] {
  const statements = text.matchAll(
    /^create or replace (?:(function|view) ([a-z_.]+)|trigger ([a-z_]+)[^;]*? on ([a-z_.]+))/gm,
  );
  return [...statements].map(([, kind, name, trigger, table]) =>
    kind === undefined
      ? { kind: "trigger", name: `${trigger} on ${table}` }
      : { kind, name: name ?? "" },
  );
}

const declaredNames = (file: SqlFile): string[] => declaredObjects(file).map(nameOf);

/** Without arguments: function names are unique. */
const nameOf = ({ kind, name }: SchemaObject): string => `${kind} ${name.replace(/\(.*$/s, "")}`;
const keyOf = ({ kind, name }: SchemaObject): string => `${kind} ${name}`;
const byKey = <T extends SchemaObject>(objects: readonly T[]): Map<string, T> =>
  new Map(objects.map((each) => [keyOf(each), each]));

const schemaOf = ({ name }: SchemaObject): string =>
  name.replace(/^.* on /, "").replace(/\..*$/s, "");
const schemasOf = (objects: readonly SchemaObject[]): string[] => [
  ...new Set([...migratedSchemas, ...objects.map(schemaOf)]),
];

function refuseUnclear(
  files: readonly SqlFile[],
  recorded: readonly RecordedObject[],
  owner: Owner,
): void {
  const makers = new Map(
    recorded.filter((each) => each.owner !== owner).map((each) => [nameOf(each), each.file]),
  );
  for (const file of files) {
    const names = declaredNames(file);
    if (names.length === 0) {
      throw new ConfigurationError(
        `${file.name} makes nothing: "create or replace function" (or view, or trigger) has to begin a line of it.`,
      );
    }
    for (const name of names) {
      const other = makers.get(name);
      if (other !== undefined) {
        throw new ConfigurationError(`${file.name} makes ${name}, which ${other} makes already.`);
      }
      makers.set(name, file.name);
    }
  }
}

/** Whether all objects of a file exist unchanged and were made from this very text. Pure. */
function isAsMade(
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

/** Objects that cannot be replaced in place: a function with other arguments or results, a view with other columns. */
const needsDrop: readonly string[] = ["42P13", "42P16", "42725"];

async function replaceFile(
  trx: Knex.Transaction,
  file: SqlFile,
  known: readonly LiveObject[],
): Promise<void> {
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
      `This version replaces ${kind} ${name}, and something that is not ours rests on it: ${detail}. ` +
        'Drop that, run "tallyhook migrate" again, and make it anew.',
      { cause: error },
    );
  }
}

async function record(
  trx: Knex.Transaction,
  files: readonly SqlFile[],
  owner: Owner,
  major: number,
): Promise<void> {
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
  const { rows } = await db.raw<{ rows: { there: boolean }[] }>(
    "select to_regclass(?) is not null as there",
    [recordTable],
  );
  return rows[0]?.there === true ? db<RecordedObject>(recordTable).orderBy(["kind", "name"]) : [];
}

async function serverMajor(db: Knex): Promise<number> {
  const { rows } = await db.raw<{ rows: { major: number }[] }>(
    "select current_setting('server_version_num')::int / 10000 as major",
  );
  return rows[0]?.major ?? 0;
}

export interface SqlFile {
  /** Its path in the project. */
  name: string;
  text: string;
  sha256: string;
}

/** The project, or `dist/`: the same depth in both. */
const root = new URL("../../../", import.meta.url);

export async function readSqlFile(url: URL): Promise<SqlFile> {
  const text = await readFile(url, "utf8");
  return {
    name: relative(root.pathname, url.pathname),
    text,
    sha256: createHash("sha256").update(text).digest("hex"),
  };
}

/** A missing privilege of the login is not the file's fault (`withRoleAdvice` says what to do). */
const faultsOfLogin: readonly string[] = ["42501", "25006"];

/**
 * Runs all statements of a file. Throws `ConfigurationError` with the file and the line where PostgreSQL refuses one;
 * its cause is the server's error. Other errors, such as a lost connection, are thrown as they are.
 */
async function runSqlFile(trx: Knex.Transaction, { name, text }: SqlFile): Promise<void> {
  try {
    // A question mark in the text is not a binding.
    await trx.raw(text.replaceAll("?", "\\?"));
  } catch (error) {
    const code = errorCode(error) ?? "";
    if (!(error instanceof Error) || isOutage(error) || faultsOfLogin.includes(code)) throw error;
    const { position, detail } = error as { position?: string; detail?: string };
    const line = position === undefined ? "" : `, line ${lineAt(text, Number(position))}`;
    // Knex puts the whole text before the server's message.
    const message = error.message.startsWith(text)
      ? error.message.slice(text.length + " - ".length)
      : error.message;
    throw new ConfigurationError(
      `${name}${line}: ${message}${detail === undefined ? "" : ` (${detail})`}`,
      { cause: error },
    );
  }
}

const lineAt = (text: string, position: number): number =>
  text.slice(0, position).split("\n").length;
