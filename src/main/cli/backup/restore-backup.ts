import { readFile, readdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { Knex } from "knex";
import { ConfigurationError, TallyhookError, UnreachableError, UsageError } from "../../../platform/errors.ts";
import {
  type ProgramEnd,
  connectionString,
  findClientPrograms,
  libpqEnvironment,
  run,
} from "../../../platform/postgres/client-programs.ts";
import { errorCode } from "../../../platform/postgres/errors.ts";
import { unknownMigrations } from "../../../platform/postgres/migrations.ts";
import { liftLimits } from "../../../platform/postgres/transactions.ts";
import { someOf } from "../../../platform/readable-text.ts";
import { beginRestore, endRestore } from "../../../app/open-restore.ts";
import { type Manifest, countRows, digestOf, dumpName, readManifest, tablesOf } from "./manifest.ts";

export interface RestoreOptions {
  /** The folder of the backup. */
  folder: string;
  pgBin?: string | undefined;
  signal: AbortSignal;
}

/**
 * Restores a backup into an empty database, in one transaction, and compares the rows with the backup's counts. The
 * functions are then those of the version that made it: migrate next, then `settleRestored`. Until that is done, no
 * process starts on the database (`isRestoreOpen`), however this one ends. Call it under the lock (`aloneInRestore`).
 * Throws `UsageError` for a backup that is not whole or a database that is not empty, `ConfigurationError` for one of a
 * newer version, `UnreachableError` where pg_restore fails.
 */
export async function restoreBackup(
  { url, db }: { url: string; db: Knex },
  { folder, pgBin, signal }: RestoreOptions,
): Promise<Manifest> {
  const manifest = await readWholeBackup(folder);
  await assertEmpty(db);
  signal.throwIfAborted();
  const { rows } = await db.raw<{ rows: [{ version: number }] }>(
    "select current_setting('server_version_num')::integer as version",
  );
  const { pgRestore } = await findClientPrograms(rows[0].version, pgBin);
  const isMarkOurs = await beginRestore(db);
  const restored = await fillDatabase(url, {
    pgRestore,
    folder,
    flags: ["--single-transaction", "--exit-on-error"],
    signal,
  });
  signal.throwIfAborted();
  if (restored.code !== 0) {
    const left = await cleanUp(db, { isMarkOurs });
    const why = restored.err.split("\n").find((line) => /error/i.test(line)) ?? restored.err;
    throw new UnreachableError(`pg_restore failed (exit code ${restored.code}): ${why.trim()}. ${leftText[left]}`);
  }
  const [first] = await differingTables(db, manifest);
  if (first !== undefined) {
    throw new TallyhookError(
      `${first.problem}. Do not start anything on this database: drop it, and restore another backup.`,
    );
  }
  return manifest;
}

/** The manifest of a backup that is whole, and whose schema this version knows. Throws as `restoreBackup` does. */
export async function readWholeBackup(folder: string): Promise<Manifest> {
  const manifest = await readManifest(folder);
  await assertWhole(folder, manifest);
  const unknown = await unknownMigrations(manifest.migrations);
  if (unknown.length === 0) return manifest;
  throw new ConfigurationError(
    `The backup was made by a newer version of Tallyhook, ${manifest.tallyhook} (it has ${someOf(unknown)}). Restore ` +
      "it with that version or a later one.",
  );
}

/** Runs pg_restore on a backup's dump. Owners and privileges are not restored. Rejects where it cannot be started. */
export function fillDatabase(
  url: string,
  {
    pgRestore,
    folder,
    flags,
    signal,
  }: { pgRestore: string; folder: string; flags: readonly string[]; signal: AbortSignal },
): Promise<ProgramEnd> {
  const environment = libpqEnvironment(url);
  const database = connectionString({ dbname: environment["PGDATABASE"] ?? "" });
  return run(
    pgRestore,
    ["--no-password", "--no-owner", "--no-privileges", ...flags, `--dbname=${database}`, join(folder, dumpName)],
    { environment, signal },
  );
}

type Left = "empty" | "marked" | "filled";

/**
 * After a pg_restore that failed: unmarks the database where this process marked it and nothing is in it. It may still
 * be filled if the connection was lost during the commit. Returns the remaining tables.
 */
async function cleanUp(db: Knex, { isMarkOurs }: { isMarkOurs: boolean }): Promise<Left> {
  if ((await tablesOf(db)).length > 0) return "filled";
  if (!isMarkOurs) return "marked";
  await endRestore(db);
  return "empty";
}

const leftText: Readonly<Record<Left, string>> = {
  empty: "The database is as empty as before.",
  marked: "The database is empty, and marked by an earlier restore that ended early: restore again, or drop it.",
  filled: "The database is not empty any more: drop it, make it again, and restore again.",
};

async function assertWhole(folder: string, { dump }: Manifest): Promise<void> {
  const found = await digestOf(join(folder, dumpName)).catch((cause: unknown) => {
    throw new UsageError(
      `${join(folder, dumpName)} cannot be read (${errorCode(cause)}). Name the folder of a whole backup.`,
      { cause },
    );
  });
  if (found.bytes === dump.bytes && found.sha256 === dump.sha256) return;
  throw new UsageError(
    `${join(folder, dumpName)} is not what its manifest describes: ${found.bytes} bytes in place of ${dump.bytes}, or ` +
      "others. It was changed or copied in part. Copy it again, or use another backup.",
  );
}

async function assertEmpty(db: Knex): Promise<void> {
  const [first] = await tablesOf(db);
  if (first === undefined) return;
  throw new UsageError(
    `The database of DATABASE_URL is not empty (it has ${first.name}), and a restore overwrites nothing. Make a new one ` +
      "(createdb), and set DATABASE_URL to it. After a restore that ended early, drop the database and make it again.",
  );
}

/** The tables whose rows are not as many as the backup counted. Reads every table. */
export async function differingTables(db: Knex, { rows }: Manifest): Promise<{ table: string; problem: string }[]> {
  const found = await db.transaction(async (trx) => {
    // It reads every table, which may take hours.
    await liftLimits(trx);
    return countRows(trx);
  });
  return Object.entries(rows).flatMap(([table, wanted]) => {
    const problem = `${table} has ${found[table] ?? "no"} rows, and the backup counted ${wanted}`;
    return found[table] === wanted ? [] : [{ table, problem }];
  });
}

/**
 * Customers erased by the time of the latest backup in the same place; `unread` names the folders with an unreadable
 * manifest.
 */
export async function erasedByLaterBackups(
  folder: string,
  { database, takenAt }: Manifest,
): Promise<{ erased: string[]; unread: string[] }> {
  const parent = dirname(resolve(folder));
  const erased: string[] = [];
  const unread: string[] = [];
  for (const name of await readdir(parent)) {
    try {
      const other = await readManifest(join(parent, name));
      if (other.database === database && other.takenAt >= takenAt) erased.push(...other.erased);
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      const isNoBackup = ["ENOENT", "ENOTDIR"].includes(errorCode(error.cause) ?? "");
      if (!isNoBackup) unread.push(name);
    }
  }
  return { erased, unread };
}

/** The ids of a list, one a line. Throws `UsageError`. */
export async function readIds(file: string): Promise<string[]> {
  try {
    const lines = (await readFile(file, "utf8")).split("\n");
    return lines.map((line) => line.trim()).filter((line) => line !== "");
  } catch (cause) {
    throw new UsageError(
      `${file} cannot be read (${errorCode(cause)}). Name a file with the id of a customer in each line.`,
      { cause },
    );
  }
}
