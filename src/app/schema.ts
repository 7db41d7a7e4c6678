import { tallyhook } from "../platform/command-line.ts";
import type { Knex } from "knex";
import { ConfigurationError } from "../platform/errors.ts";
import type { MigrateOptions } from "../platform/postgres/migration-session.ts";
import {
  type Migrated,
  type RefusingMigration,
  type Schema,
  migrateToLatest,
  migrationsFolder,
  newerMigrations,
  ownMigrationsFolder,
  pendingMigrations,
  refusingMigrations,
} from "../platform/postgres/migrations.ts";
import { pendingObjects } from "../platform/postgres/schema-objects.ts";
import { readSqlFile } from "../platform/postgres/sql-file.ts";
import { someOf } from "../platform/readable-text.ts";
import { isRestoreOpen, openRestore } from "./open-restore.ts";
import type { Runtime, WorkingPart } from "./runtime.ts";

/** All that `migrate` makes: migrations, and the parts' functions, views and triggers, those of the base first. */
async function schemaOf(parts: readonly Pick<WorkingPart, "sql">[]): Promise<Schema> {
  const files = await Promise.all(parts.map(async (part) => (await part.sql?.()) ?? { program: [] }));
  return {
    migrations: migrationsFolder,
    objects: files.flatMap(({ program }) => program),
    ownMigrations: ownMigrationsFolder,
    ownObjects: files.flatMap(({ own = [] }) => own),
  };
}

/** Brings a database up to date (`migrateToLatest`). */
export const migrateSchema = async (
  db: Knex,
  parts: readonly WorkingPart[],
  options?: MigrateOptions,
): Promise<Migrated> => migrateToLatest(db, await schemaOf(parts), options);

/** Migrations that the database lacks, and files whose functions are missing there or differ. Read-only. */
export async function pendingSchema(db: Knex, parts: readonly WorkingPart[]): Promise<string[]> {
  const schema = await schemaOf(parts);
  const migrations = await pendingMigrations(db, schema);
  const files = await Promise.all([...schema.objects, ...schema.ownObjects].map(readSqlFile));
  return [...migrations, ...(await pendingObjects(db, files))];
}

/**
 * Returns the database. Throws `ConfigurationError` if its schema is older than this version, or newer by more than this
 * version can run beside: a command must not guess at a schema.
 */
export async function migratedDatabase(runtime: Pick<Runtime, "db" | "parts">): Promise<Knex> {
  const db = await restoredDatabase(runtime);
  if (await isRestoreOpen(db)) throw new ConfigurationError(openRestore);
  return db;
}

/** The same of a database whose restore is not done, which is for the commands that do it. */
export async function restoredDatabase(runtime: Pick<Runtime, "db" | "parts">): Promise<Knex> {
  const db = await runtime.db();
  const problem = schemaProblem({
    pending: await pendingSchema(db, runtime.parts),
    unknown: await newerMigrations(db),
    refusing: await refusingMigrations(db),
  });
  if (problem !== null) throw new ConfigurationError(problem);
  return db;
}

interface SchemaState {
  /** What the database lacks of this version. */
  pending: readonly string[];
  /** What it has of another one. */
  unknown: readonly string[];
  /** What of that this version must not run beside. */
  refusing: readonly RefusingMigration[];
}

/** Why a process of this version must not start, and what to do; null: it may. */
function schemaProblem({ pending, unknown, refusing }: SchemaState): string | null {
  const [first] = refusing;
  if (first !== undefined) {
    return (
      `The database was migrated by a newer version of Tallyhook: ${someOf(refusing.map(({ name }) => name))} took away ` +
      `what this version may need (it would have to know ${first.needs}). Start the version that migrated it, or a ` +
      "later one. The way back to this version is a backup (docs/upgrading.md)."
    );
  }
  if (pending.length === 0) return null;
  // `migrate` of this version would refuse as well.
  return unknown.length > 0
    ? `The database was migrated by another version of Tallyhook: it has ${someOf(unknown)}, which this version does ` +
        `not know, and lacks ${someOf(pending)}. Start the version that migrated it, or a later one.`
    : `The database lacks ${someOf(pending)}. Run "${tallyhook("migrate")}" first.`;
}
