import type { Knex } from "knex";
import { ConfigurationError, UnreachableError } from "../platform/errors.ts";
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
import { optionalRooms } from "./optional-rooms.ts";
import { isRestoreOpen, openRestore } from "../app/open-restore.ts";
import type { Standby } from "./rooms/room-interfaces.ts";
import type { Runtime } from "../app/runtime.ts";

const inFolder = (folder: string, ...names: string[]): URL[] =>
  names.map((name) => new URL(`../${folder}/${name}.sql`, import.meta.url));

/** Functions, views and triggers in order of creation: each may use those before it. */
const objects: readonly URL[] = [
  ...inFolder("core/inbox", "events", "first-event-at"),
  // Every room needs the meaning of statuses.
  ...inFolder("core/mirror/as-of", "statuses"),
  ...inFolder("core/mirror", "resources", "append-only", "write/overrule", "forget-unbelieved", "retry-due", "awaits"),
  ...inFolder("core/mirror", "chargebacks", "changes/readable-until"),
  ...inFolder("core/inbox", "readable-until"),
  ...inFolder("core/mirror/changes", "next-changes"),
  ...inFolder("parts/reconcile", "runs/run-states", "coverage/slice-times", "findings/finding-dates"),
  ...inFolder("parts/reconcile", "findings/finding-versions"),
  ...inFolder("app/proof", "enforced-findings"),
  ...inFolder("parts/reconcile", "findings/decide-finding", "recheck/recheck-times"),
  ...inFolder("app/proof", "routine-reads"),
  ...inFolder("core/mirror/as-of", "json-values", "day-start", "recurring-amounts"),
  // Objects as of a time.
  ...inFolder("core/mirror/as-of", "touched", "transactions", "orders", "renewal-cycles", "order-retries", "day-sums"),
  ...inFolder("core/mirror/as-of", "subscription-states", "chargebacks"),
  // What was read and proved.
  ...inFolder("app/proof", "unproved-objects", "read-slices", "fresh-slices", "changes-read-until", "read-unsettled"),
  ...inFolder("app/proof", "finding-lives", "open-findings", "verdict"),
  ...inFolder("core/mirror/as-of", "last-changes"),
  // What moved money, and when it is booked.
  ...inFolder("core/mirror/as-of", "settlement-spans", "movements", "booked-movements"),
  ...(optionalRooms.reports?.sql ?? []),
  ...inFolder("parts/delivery/dispatch", "remove-runs"),
  // The rights that partitions take.
  ...inFolder("core/inbox", "keep-partitions"),
  ...inFolder("core/mirror/changes", "keep-partitions"),
  ...inFolder("app/people", "audit-append-only", "require-act"),
];

const schema: Schema = {
  migrations: migrationsFolder,
  objects,
  ownMigrations: ownMigrationsFolder,
  ownObjects: optionalRooms.reports?.ownSql ?? [],
};

/** Brings a database up to date (`migrateToLatest`). */
export const migrateSchema = (db: Knex, options?: MigrateOptions): Promise<Migrated> =>
  migrateToLatest(db, schema, options);

/** Migrations that the database lacks, and files whose functions are missing there or differ. Read-only. */
export async function pendingSchema(db: Knex): Promise<string[]> {
  const migrations = await pendingMigrations(db, schema);
  const files = await Promise.all([...schema.objects, ...schema.ownObjects].map(readSqlFile));
  return [...migrations, ...(await pendingObjects(db, files))];
}

/**
 * Returns the database. Throws `ConfigurationError` if its schema is older than this version, or newer by more than this
 * version can run beside: a command must not guess at a schema.
 */
export async function migratedDatabase(runtime: Pick<Runtime, "db">): Promise<Knex> {
  const db = await restoredDatabase(runtime);
  if (await isRestoreOpen(db)) throw new ConfigurationError(openRestore);
  return db;
}

/** The same of a database whose restore is not done, which is for the commands that do it. */
export async function restoredDatabase(runtime: Pick<Runtime, "db">): Promise<Knex> {
  const db = await runtime.db();
  const problem = schemaProblem({
    pending: await pendingSchema(db),
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

/** Why a process of this version must not start, and what to do; null: it may. Pure. */
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
    : `The database lacks ${someOf(pending)}. Run "node src/bin/tallyhook.js migrate" first.`;
}

/** The standby that reports are read from; null without REPORTS_DATABASE_URL. */
export function reportsStandbyOf({
  config,
  secrets,
  reportsStandby,
}: Pick<Runtime, "config" | "secrets" | "reportsStandby">): Standby | null {
  if (secrets.reportsDatabaseUrl === null) return null;
  return {
    maxLagSeconds: config.reportsMaxLagSeconds,
    connect: reportsStandby,
    async assertMigrated(db) {
      const pending = await pendingSchema(db);
      if (pending.length === 0) return;
      throw new UnreachableError(
        `REPORTS_DATABASE_URL: the standby lacks ${someOf(pending)}, which the primary has. Wait until it has caught up.`,
      );
    },
  };
}
