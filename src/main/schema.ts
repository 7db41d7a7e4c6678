import type { Knex } from "knex";
import {
  type Migrated,
  type Schema,
  migrateToLatest,
  migrationsFolder,
  ownMigrationsFolder,
  pendingMigrations,
  pendingObjects,
  readSqlFile,
} from "../platform/postgres/migrations.ts";
import { programReports } from "../reports/catalogue/all.ts";
import { ownReports } from "../reports/own/own-reports.ts";

const inRoom = (room: string, ...names: string[]): URL[] =>
  names.map((name) => new URL(`../${room}/${name}.sql`, import.meta.url));

/** Functions, views and triggers, in the order in which they are made: each may use those before it. */
const objects: readonly URL[] = [
  ...inRoom("inbox", "events"),
  ...inRoom("mirror", "append-only", "chargebacks"),
  ...inRoom("reconcile", "runs/run-states", "coverage/slice-times", "findings/finding-dates"),
  ...inRoom("reconcile", "findings/finding-versions", "recheck/recheck-times"),
  ...inRoom("reports/base", "json-values", "statuses", "day-start", "recurring-amounts"),
  // What objects said as of a time.
  ...inRoom("reports/base", "touched", "transactions", "orders", "order-retries"),
  ...inRoom("reports/base", "subscription-states", "chargebacks"),
  // What was read and proved.
  ...inRoom("reports/base", "unproved-objects", "read-slices", "changes-read-until"),
  ...inRoom("reports/base", "read-unsettled", "finding-lives", "verdict", "last-changes"),
  // What moved money, and when it is booked.
  ...inRoom("reports/base", "settlement-spans", "movements", "booked-movements"),
  ...inRoom("reports/close", "append-only"),
  ...programReports.map(({ sql }) => sql),
];

const schema: Schema = {
  migrations: migrationsFolder,
  objects,
  ownMigrations: ownMigrationsFolder,
  ownObjects: ownReports.map(({ sql }) => sql),
};

/** Brings a database up to date (`migrateToLatest`). */
export const migrateSchema = (db: Knex): Promise<Migrated> => migrateToLatest(db, schema);

/** Names of migrations that the database lacks, and of files whose functions it has not or of another text. Only reads. */
export async function pendingSchema(db: Knex): Promise<string[]> {
  const migrations = await pendingMigrations(db, schema);
  const files = await Promise.all([...schema.objects, ...schema.ownObjects].map(readSqlFile));
  return [...migrations, ...(await pendingObjects(db, files))];
}
