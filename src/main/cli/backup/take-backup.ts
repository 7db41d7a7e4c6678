import { createHash } from "node:crypto";
import { chmod, mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Knex } from "knex";
import { ConfigurationError, TallyhookError, UnreachableError } from "../../../platform/errors.ts";
import { makeDirectory, writePrivate } from "../../../platform/files.ts";
import {
  type ClientPrograms,
  type ProgramEnd,
  findClientPrograms,
  libpqEnvironment,
  run,
} from "../../../platform/postgres/client-programs.ts";
import { errorCode } from "../../../platform/postgres/errors.ts";
import { appliedMigrations } from "../../../platform/postgres/migrations.ts";
import { liftLimits, tryLock } from "../../../platform/postgres/transactions.ts";
import { noteBackup } from "../../../core/mirror/backups.ts";
import { isRestoreOpen, openRestore } from "../../../app/open-restore.ts";
import { type Manifest, countRows, digestOf, dumpName, manifestName, readManifest } from "./manifest.ts";
import { leftSchemas, leftTables } from "../../database-rights.ts";
import { type UnreadableSchema, unreadableSchemas } from "./unreadable.ts";

export interface BackupOptions {
  /** The folder that holds the backups, a folder each. Made where it is missing. */
  directory: string;
  /** How many whole backups of this database stay, with the new one. */
  keep: number;
  /** Where pg_dump is; where it is likely to be without. */
  pgBin?: string | undefined;
  /** Tallyhook's version. */
  version: string;
  /** Ends the backup, which then leaves nothing behind. It rejects with the signal's reason. */
  signal: AbortSignal;
}

export interface Backup {
  folder: string;
  manifest: Manifest;
  /** Schemas of others that this user may not read, and that are left out. */
  unreadable: readonly UnreadableSchema[];
  /** Folders of older backups that were removed. */
  removed: string[];
  /** The database knows of it. Else the alert `backup_overdue` comes although it was made. */
  isNoted: boolean;
}

/** Held by the one backup of a database that is at work. An arbitrary fixed number. */
const backupLock = 7_255_011_950;

/**
 * Writes everything of one moment that cannot be rebuilt into a new folder, reads it back, and only then gives the folder
 * its name: a folder without `.partial` is a whole backup. Afterwards removes older ones (`keep`). One at a time for a
 * database. Throws `UnreachableError` where it cannot be written or another one is at work, `ConfigurationError` where
 * the programs are missing.
 */
export async function takeBackup({ url, db }: { url: string; db: Knex }, options: BackupOptions): Promise<Backup> {
  const { directory, keep, signal } = options;
  await note(db, null);
  const made = await db.transaction(
    async (trx) => {
      const plan = await planBackup(trx, options.pgBin);
      const { about, unreadable } = plan;
      await lockBackups(trx);
      await writable(directory, async () => {
        await makeDirectory(directory);
        await readdir(directory);
      });
      const name = `${fileName(about.database)}-${about.takenAt.replaceAll(/:|\.\d+/g, "-").replace(/--?Z$/, "Z")}`;
      await removePartial(directory, about);
      const partial = join(directory, `${name}${partialEnding(about)}`);
      try {
        await writable(directory, () => mkdir(partial, { mode: 0o700 }));
        const manifest = await writeBackup({ url, trx }, { ...options, ...plan, folder: partial });
        signal.throwIfAborted();
        const folder = join(directory, name);
        await writable(directory, () => rename(partial, folder));
        await syncFolder(directory);
        return {
          folder,
          manifest,
          unreadable,
          removed: await prune(directory, { ...about, made: name }, keep),
        };
      } catch (error) {
        await rm(partial, { recursive: true, force: true }).catch(() => {});
        signal.throwIfAborted();
        throw error;
      }
    },
    { isolationLevel: "repeatable read" },
  );
  return { ...made, isNoted: await note(db, made.manifest.takenAt) };
}

/** Returns whether it is written down: a standby, which can be backed up, takes no row. */
async function note(db: Knex, takenAt: string | null): Promise<boolean> {
  try {
    await noteBackup(db, takenAt);
    return true;
  } catch (error) {
    if (errorCode(error) === undefined) throw error;
    return false;
  }
}

/** The content of a database's backup, and the programs that make it. */
export interface BackupPlan {
  about: About;
  unreadable: readonly UnreadableSchema[];
  programs: ClientPrograms;
}

/**
 * Begins a transaction of which a backup is made: lifts its limits, and exports its snapshot. Its first statements, in
 * `repeatable read`. Throws `ConfigurationError` where the database is not ours or the programs are missing.
 */
export async function planBackup(trx: Knex.Transaction, pgBin?: string): Promise<BackupPlan> {
  // It waits for pg_dump, which may take hours.
  await liftLimits(trx);
  const about = await describe(trx);
  await assertOurs(trx);
  const unreadable = await unreadableSchemas(trx);
  return { about, unreadable, programs: await findClientPrograms(about.serverNumber, pgBin) };
}

interface About {
  database: string;
  /** Identifies the server's files: a database of the same name elsewhere is another one. */
  system: string;
  takenAt: string;
  snapshot: string;
  server: string;
  serverNumber: number;
}

/** The first statement of the transaction: everything that it reads is of this moment. */
async function describe(trx: Knex.Transaction): Promise<About> {
  const { rows } = await trx.raw<{ rows: [Omit<About, "takenAt" | "system"> & { now: Date }] }>(
    `select current_database() as database, now(), pg_export_snapshot() as snapshot,
            current_setting('server_version') as server, current_setting('server_version_num')::integer as "serverNumber"`,
  );
  const [{ now, ...about }] = rows;
  return { ...about, system: await systemOf(trx), takenAt: now.toISOString() };
}

/** Empty where the user may not ask: then databases of one name are one. */
async function systemOf(trx: Knex.Transaction): Promise<string> {
  const may = await trx.raw<{ rows: [{ may: boolean }] }>(
    "select has_function_privilege('pg_catalog.pg_control_system()', 'execute') as may",
  );
  if (!may.rows[0].may) return "";
  const { rows } = await trx.raw<{ rows: [{ system: string }] }>(
    "select system_identifier::text as system from pg_control_system()",
  );
  return rows[0].system;
}

async function assertOurs(trx: Knex.Transaction): Promise<void> {
  if ((await appliedMigrations(trx)).length === 0) {
    throw new ConfigurationError(
      "The database of DATABASE_URL holds nothing of Tallyhook, so there is nothing to back up. Check DATABASE_URL.",
    );
  }
  if (await isRestoreOpen(trx)) throw new ConfigurationError(openRestore);
}

async function lockBackups(trx: Knex.Transaction): Promise<void> {
  if (await tryLock(trx, backupLock)) return;
  throw new UnreachableError(
    "Another backup of this database is running. Wait until it is done; if it hangs, end its process.",
  );
}

/**
 * Writes the two files of a backup of the transaction's snapshot (`planBackup`) into an existing folder, and reads the
 * dump back. Throws `UnreachableError` where it cannot be written.
 */
export async function writeBackup(
  { url, trx }: { url: string; trx: Knex.Transaction },
  {
    folder,
    programs,
    about,
    unreadable,
    version,
    signal,
  }: Pick<BackupOptions, "version" | "signal"> & BackupPlan & { folder: string },
): Promise<Manifest> {
  const without = [...leftSchemas, ...unreadable.map(({ schema }) => schema)];
  const environment = libpqEnvironment(url);
  const dump = join(folder, dumpName);
  const dumped = await run(
    programs.pgDump,
    [
      "--format=custom",
      "--no-password",
      `--snapshot=${about.snapshot}`,
      `--file=${dump}`,
      ...without.map((schema) => `--exclude-schema="${schema.replaceAll('"', '""')}"`),
      ...leftTables.map((table) => `--exclude-table-data=${table}`),
    ],
    { environment, signal },
  );
  signal.throwIfAborted();
  if (dumped.code !== 0) throw failed("pg_dump", dumped);
  await chmod(dump, 0o600);
  const rows = await countRows(trx, without);
  // Reads and unpacks all of it, as a restore does: the list alone is at the beginning of the file.
  const checked = await run(programs.pgRestore, ["--file=/dev/null", dump], { signal });
  signal.throwIfAborted();
  if (checked.code !== 0) throw failed("pg_restore, which reads the backup once more,", checked);
  const erased = await trx("mirror.erasures").orderBy("customer_id").pluck<string[]>("customer_id");
  const manifest: Manifest = {
    format: 1,
    takenAt: about.takenAt,
    tallyhook: version,
    database: about.database,
    system: about.system,
    postgres: { server: about.server, pgDump: programs.version },
    migrations: await appliedMigrations(trx),
    dump: await digestOf(dump),
    rows,
    leftOut: [...leftTables, ...without.map((schema) => `${schema}.*`)],
    erased,
  };
  await assertListed(programs, dump, manifest, signal);
  await writable(folder, () => writePrivate(join(folder, manifestName), `${JSON.stringify(manifest, null, 2)}\n`));
  await syncFolder(folder);
  return manifest;
}

/** Every table that has rows is in the list of the backup's contents. */
async function assertListed(
  { pgRestore }: ClientPrograms,
  dump: string,
  { rows }: Manifest,
  signal: AbortSignal,
): Promise<void> {
  const listed = await run(pgRestore, ["--list", dump], { signal });
  signal.throwIfAborted();
  if (listed.code !== 0) throw failed("pg_restore --list", listed);
  const tables = new Set(
    [...listed.out.matchAll(/^\d+; \d+ \d+ TABLE(?: DATA)? (\S+) (\S+) /gm)].map(
      ([, schema, table]) => `${schema}.${table}`,
    ),
  );
  const missing = Object.keys(rows).filter((table) => !tables.has(table));
  if (missing.length === 0) return;
  throw new TallyhookError(
    `The backup lacks the table ${missing[0]}, so it was removed. May the user of DATABASE_URL read every table?`,
  );
}

function failed(program: string, { err, code }: ProgramEnd): TallyhookError {
  const lines = err.trim().split("\n");
  const why = lines.find((line) => /error/i.test(line)) ?? lines.at(-1) ?? "";
  const advice = /no space left|file too large|disk quota/i.test(err)
    ? "The disk is full: make room, or name another directory."
    : "Nothing of it is left behind; run it again when the cause is gone.";
  return new UnreachableError(`${program} failed (exit code ${code}): ${why}. ${advice}`);
}

/** Explains why a directory cannot be written. */
async function writable<T>(directory: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (cause instanceof TallyhookError) throw cause;
    throw new ConfigurationError(
      `No backup can be written to ${directory} (${errorCode(cause)}): it must be a directory in which this user may ` +
        "make folders, on a disk with room.",
      { cause },
    );
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** A name that is one in every file system. */
const fileName = (database: string): string => database.replaceAll(/[^A-Za-z0-9_]/g, "_");

/** Matches a whole backup, or one with an ending after its name. */
const nameOf = (database: string, ending = ""): RegExp =>
  new RegExp(String.raw`^${fileName(database)}-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ${ending}$`);

/** The ending of a backup in progress: only of this database, even in a shared directory. */
function partialEnding({ database, system }: Pick<About, "database" | "system">): string {
  const owner = createHash("sha256")
    .update(JSON.stringify([system, database]))
    .digest("hex");
  return `.${owner.slice(0, 12)}.partial`;
}

/** Removes the remains of a killed backup: under the lock, none of this database is in progress. */
async function removePartial(directory: string, about: About): Promise<void> {
  const name = nameOf(about.database, partialEnding(about));
  for (const each of await readdir(directory)) {
    if (name.test(each)) await rm(join(directory, each), { recursive: true, force: true });
  }
}

/**
 * Removes whole backups of this database but for the one just made, `made`, and the newest of the others: one of them may
 * have a later date, of a clock that ran ahead. Returns the folders.
 */
async function prune(
  directory: string,
  { database, system, made }: Pick<About, "database" | "system"> & { made: string },
  keep: number,
): Promise<string[]> {
  const name = nameOf(database);
  const others: string[] = [];
  for (const each of (await readdir(directory)).sort().reverse()) {
    if (each === made || !name.test(each)) continue;
    const folder = join(directory, each);
    const manifest = await readManifest(folder).catch(() => null);
    // Another database's name may give the same file name, and another server may have a database of this one.
    if (manifest?.database === database && manifest.system === system) others.push(folder);
  }
  const removed = others.slice(keep - 1);
  for (const folder of removed) await rm(folder, { recursive: true, force: true });
  return removed;
}
