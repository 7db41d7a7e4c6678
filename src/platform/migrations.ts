import { readdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Knex } from "knex";
import { ConfigurationError } from "./errors.ts";
import { isRecordOutdated, readSchemaText, recordSchemaText } from "./schema-text.ts";

/** `<root>/migrations` beside `src/`, or `dist/migrations` beside `dist/src/`: the same depth in both. */
const ownMigrations = new URL("../../migrations/", import.meta.url);
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
 * Brings the schema up to date and gives back the names that were applied now, oldest first. All of them are
 * one transaction under an advisory lock: a crash leaves nothing half done and no lock behind, and of two
 * processes that migrate at once the second finds nothing to do. No time limit holds for it. Idempotent. Throws `ConfigurationError`
 * when the database was migrated by a newer version.
 */
export async function migrateToLatest(db: Knex, directory: URL = ownMigrations): Promise<string[]> {
  return db.transaction(async (trx) => {
    // Operators limit statements for the sake of others; a migration takes as long as it takes.
    await trx.raw(
      "select set_config(name, '0', true) from pg_settings where name = any(?::text[])",
      [liftedLimits],
    );
    await trx.raw("SELECT pg_advisory_xact_lock(?)", [advisoryLock]);
    await refuseNewerSchema(trx, directory);
    const isPending = (await pendingMigrations(trx, directory)).length > 0;
    const before = isPending ? await readSchemaText(trx) : [];
    const [, applied] = (await trx.migrate.latest({
      tableName: ledger,
      migrationSource: migrationSource(directory),
    })) as [number, string[]];
    if (isPending || (await isRecordOutdated(trx))) await recordSchemaText(trx, before);
    return applied;
  });
}

/** Names of the migrations that this version has and the database has not, oldest first. Only reads. */
export async function pendingMigrations(
  db: Knex,
  directory: URL = ownMigrations,
): Promise<string[]> {
  const [known, applied] = [await migrationNames(directory), new Set(await appliedMigrations(db))];
  return known.filter((name) => !applied.has(name));
}

/** Names of the migrations that the database has and this version does not know. Only reads. */
export async function newerMigrations(db: Knex, directory: URL = ownMigrations): Promise<string[]> {
  const known = new Set(await migrationNames(directory));
  return (await appliedMigrations(db)).filter((name) => !known.has(name));
}

/** The first names of a list, and how many more there are. */
export function someOf(names: readonly string[]): string {
  const shown = 3;
  const more = names.length - shown;
  return names.slice(0, shown).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

async function refuseNewerSchema(db: Knex, directory: URL): Promise<void> {
  const unknown = await newerMigrations(db, directory);
  if (unknown.length > 0) {
    throw new ConfigurationError(
      `The database was migrated by a newer version of Tallyhook (it has ${someOf(unknown)}). ` +
        "Run that version or a later one, or use another database.",
    );
  }
}

async function appliedMigrations(db: Knex): Promise<string[]> {
  const { rows } = await db.raw<{ rows: { present: boolean }[] }>(
    "SELECT to_regclass(?) IS NOT NULL AS present",
    [ledger],
  );
  if (rows[0]?.present !== true) return [];
  return db(ledger).orderBy("id").pluck<string[]>("name");
}

/** Names without extension, so that one ledger serves the sources (`.ts`) and the build (`.js`). */
async function migrationNames(directory: URL): Promise<string[]> {
  return (await migrationFiles(directory)).map(nameOf);
}

const nameOf = (file: string): string => file.replace(/\.[jt]s$/, "");

async function migrationFiles(directory: URL): Promise<string[]> {
  try {
    const files = await readdir(fileURLToPath(directory));
    return files.filter((file) => /^\d{4}_.+(?<!\.d)\.[jt]s$/.test(file)).sort();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

function migrationSource(directory: URL): Knex.MigrationSource<string> {
  return {
    getMigrations: () => migrationFiles(directory),
    getMigrationName: nameOf,
    getMigration: async (file) => (await import(new URL(file, directory).href)) as Knex.Migration,
  };
}
