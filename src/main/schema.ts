import type { Knex } from "knex";
import * as schema from "../app/schema.ts";
import type { MigrateOptions } from "../platform/postgres/migration-session.ts";
import type { Migrated } from "../platform/postgres/migrations.ts";
import { allParts } from "./parts.ts";

/** Brings a database up to date with all parts of this program (`migrateToLatest`). */
export const migrateSchema = (db: Knex, options?: MigrateOptions): Promise<Migrated> =>
  schema.migrateSchema(db, allParts, options);

/** As `pendingSchema`, for all parts of this program. */
export const pendingSchema = (db: Knex): Promise<string[]> => schema.pendingSchema(db, allParts);
