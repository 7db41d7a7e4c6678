import { readdir } from "node:fs/promises";
import type { Knex } from "knex";
import { ConfigurationError } from "../errors.ts";
import { someOf } from "../readable-text.ts";
import { tableExists, replaceObjects } from "./schema-objects.ts";
import { readSqlFile, runSqlFile } from "./sql-file.ts";

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
/** The key of the advisory lock that is held while the schema changes. An arbitrary fixed number. */
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
    // Operators limit statements so that none blocks others for long; a migration must run to its end.
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
  return (await tableExists(db, ledger)) ? db(ledger).orderBy("id").pluck<string[]>("name") : [];
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
  const isOfVersion01 = await tableExists(trx, `${ledger}_lock`);
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
