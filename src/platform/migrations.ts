import { readdir } from "node:fs/promises";
import type { Knex } from "knex";
import { ConfigurationError } from "./errors.ts";
import { replaceObjects } from "./schema-text.ts";
import { readSqlFile, runSqlFile } from "./sql-file.ts";

/** What the schema of a database is made of. Each part may rest on those before it. */
export interface Schema {
  /** A folder of numbered files: tables, indexes, rows of reference. Each is applied once and then never changed. */
  migrations: URL;
  /** Files of functions, views and triggers, each applied again when its text changes. */
  objects: readonly URL[];
  /** The merchant's own numbered files. The folder may be missing. */
  ownMigrations: URL;
  /** The merchant's own functions and views. */
  ownObjects: readonly URL[];
}

/** What `migrateToLatest` did, by the names of files. */
export interface Migrated {
  applied: string[];
  replaced: string[];
}

/** `migrations/` beside `src/`, or `dist/migrations/` beside `dist/src/`: the same depth in both. */
export const migrationsFolder = new URL("../../migrations/", import.meta.url);
export const ownMigrationsFolder = new URL("own/", migrationsFolder);
/** Names of own files begin with it, so that no number of theirs is ever one of ours. */
const ownPrefix = "own/";
const ledger = "tallyhook_migrations";
/** Any fixed number of our own; held while the schema changes. */
const advisoryLock = 7_255_011_932;
const liftedLimits = [
  "statement_timeout",
  "lock_timeout",
  "idle_in_transaction_session_timeout",
  "transaction_timeout",
];

/**
 * Brings the schema up to date: the numbered files that the database has not, then the functions, views and triggers
 * whose text is not the program's. All of it is one transaction under an advisory lock: a crash leaves nothing half
 * done and no lock behind, and of two processes that migrate at once the second finds nothing to do. No time limit
 * holds for it. Idempotent. Throws `ConfigurationError` with file and line where a statement is refused, and when the
 * database was migrated by a newer version.
 */
export async function migrateToLatest(db: Knex, schema: Schema): Promise<Migrated> {
  return db.transaction(async (trx) => {
    // Operators limit statements for the sake of others; a migration takes as long as it takes.
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

/** Names of the numbered files that the program has and the database has not, oldest first. Only reads. */
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

/** Names of migrations that the database has and this version does not know; merchants may drop theirs. Only reads. */
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

/** Names without ending, in their order. */
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
 * Version 0.1 had 43 migrations and knex's ledger of them. What they made is what the first numbered files make, so
 * that those are noted as applied; a database that is not at the last of the 43 has to be brought there first.
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
