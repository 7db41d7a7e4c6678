import { readdir } from "node:fs/promises";
import type { Knex } from "knex";
import { tallyhook } from "../command-line.ts";
import { ConfigurationError } from "../errors.ts";
import { someOf } from "../readable-text.ts";
import { type MigrateOptions, type MigrationSession, withMigrationSession } from "./migration-session.ts";
import { tableExists, replaceObjects } from "./schema-objects.ts";
import {
  type Run,
  type SqlFile,
  type SqlStatement,
  lineAt,
  readSqlFile,
  runOn,
  runSqlFile,
  runStatement,
  splitStatements,
} from "./sql-file.ts";

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

/** File names of the work that `migrateToLatest` did. */
export interface Migrated {
  applied: string[];
  replaced: string[];
}

/** A numbered file that the database lacks. */
export interface PendingMigration {
  name: string;
  /** Its first line is `-- online`: each statement runs by itself. */
  isOnline: boolean;
}

/** `migrations/` next to `src/`, or `dist/migrations/` next to `dist/src/`: the same depth in both. */
export const migrationsFolder = new URL("../../../migrations/", import.meta.url);
export const ownMigrationsFolder = new URL("own/", migrationsFolder);
/** The merchant's files begin with it, so that their numbers never collide with ours. */
const ownPrefix = "own/";
const ledger = "tallyhook_migrations";

/**
 * Brings the schema up to date: applies the numbered files that the database lacks, then the functions, views and
 * triggers whose text differs from the program's. All of it is one transaction, up to the first online file that other
 * files build on; online files that none builds on come last. An online file is recorded when its last statement is
 * done, and begins again from its first after a crash.
 *
 * A lock that is not free within half a second is requested again later, from the start of the transaction, so that no
 * session queues behind it for longer (`LockPatience`). No other limit applies. One process migrates at a time, under
 * an advisory lock that ends with its connection; the next finds nothing to do. Idempotent. Throws `ConfigurationError`
 * with file and line where a statement is refused, and when a newer version has migrated the database;
 * `UnreachableError` when it does not get a lock in time.
 */
export async function migrateToLatest(db: Knex, schema: Schema, options: MigrateOptions = {}): Promise<Migrated> {
  const done: Migrated = { applied: [], replaced: [] };
  await withMigrationSession(db, options, async (session) => {
    for (;;) {
      const { applied, replaced, online } = await migrateInTransaction(session, schema);
      done.applied.push(...applied);
      done.replaced.push(...replaced);
      if (online === null) return;
      await applyOnline(session, online);
      done.applied.push(online.name);
    }
  });
  return done;
}

const headOf = (statement: string): string => {
  const words = statement.replaceAll(/--[^\n]*/g, "").split(/\s+/);
  return words.slice(0, 8).join(" ") + (words.length > 8 ? " …" : "");
};

interface TransactionDone extends Migrated {
  /** The online file that comes next; null: the schema is up to date. */
  online: NumberedFile | null;
}

async function migrateInTransaction(session: MigrationSession, schema: Schema): Promise<TransactionDone> {
  const done = await session.patiently(() =>
    session.transaction(async (trx) => {
      await makeLedger(trx, schema.migrations);
      await refuseNewerSchema(trx, schema.migrations);
      const applied = new Set(await appliedMigrations(trx, schema.migrations));
      const pendingOf = async (folder: URL, prefix = "") =>
        nextFiles((await numberedFiles(folder, prefix)).filter(({ name }) => !applied.has(name)));
      const ours = await pendingOf(schema.migrations);
      await applyFiles(session, trx, ours.now);
      const done: TransactionDone = {
        applied: namesOf(ours.now),
        replaced: [],
        online: ours.online,
      };
      if (ours.later > 0) return done;
      done.replaced.push(...(await replaceFiles(session, trx, schema.objects, "program")));
      const own = await pendingOf(schema.ownMigrations, ownPrefix);
      await applyFiles(session, trx, own.now);
      done.applied.push(...namesOf(own.now));
      done.online ??= own.online;
      if (own.later > 0) return { ...done, online: own.online };
      done.replaced.push(...(await replaceFiles(session, trx, schema.ownObjects, "merchant")));
      return done;
    }),
  );
  session.watcher?.released();
  return done;
}

/** Returns how many rows the statement changed. */
async function runStep(
  session: MigrationSession,
  run: Run,
  file: SqlFile,
  statement: SqlStatement,
  isOnline: boolean,
): Promise<number> {
  const line = lineAt(file.text, statement.offset);
  const step = { file: file.name, line, statement: headOf(statement.text), isOnline };
  return session.step(step, run, async () => {
    const { rowCount } = await runStatement(run, file, statement);
    return rowCount ?? 0;
  });
}

async function replaceFiles(
  session: MigrationSession,
  trx: Knex.Transaction,
  urls: readonly URL[],
  owner: "program" | "merchant",
): Promise<string[]> {
  const step = {
    file: owner === "program" ? "src" : "src/parts/reports/own",
    line: null,
    statement: "functions, views and triggers",
    isOnline: false,
  };
  return session.step(step, runOn(trx), async () =>
    replaceObjects(trx, await Promise.all(urls.map(readSqlFile)), owner),
  );
}

async function applyFiles(
  session: MigrationSession,
  trx: Knex.Transaction,
  files: readonly NumberedFile[],
): Promise<void> {
  const run = runOn(trx);
  for (const { name, file } of files) {
    for (const statement of splitStatements(file.text)) {
      await runStep(session, run, file, statement, false);
    }
    await trx(ledger).insert({ name, needs: neededBy(file.text) });
  }
}

/**
 * Applies a file outside a transaction. Each statement can be run again: after a crash the file begins from its start.
 */
async function applyOnline(session: MigrationSession, { name, file }: NumberedFile): Promise<void> {
  for (const statement of splitStatements(file.text)) {
    const isRepeated = statement.comments.includes("repeat");
    const once = (): Promise<number> =>
      session.patiently(async (leftMs) => {
        // It waits for other transactions to end, and none waits for it, so no attempt is cut short.
        const limitMs = /\bconcurrently\b/i.test(statement.text) ? leftMs : session.lockTimeoutMs;
        await session.run(`set lock_timeout = ${Math.ceil(limitMs)}`);
        await dropInvalidIndex(session.run, statement);
        return runStep(session, session.run, file, statement, true);
      });
    while ((await once()) > 0 && isRepeated);
    session.watcher?.released();
  }
  await session.run(`set lock_timeout = ${session.lockTimeoutMs}`);
  const values = [name, neededBy(file.text)].map((value) =>
    value === null ? "null" : `'${value.replaceAll("'", "''")}'`,
  );
  await session.run(`insert into ${ledger} (name, needs) values (${values.join(", ")})`);
}

/** A `create index concurrently` that broke off leaves an index that is kept up and never used. */
async function dropInvalidIndex(run: Run, { text }: SqlStatement): Promise<void> {
  const [, index, schema] =
    /^create\s+(?:unique\s+)?index\s+concurrently\s+(?:if\s+not\s+exists\s+)?(\w+)\s+on\s+(\w+)\./i.exec(text) ?? [];
  if (index === undefined || schema === undefined) return;
  const { rows } = await run<unknown>(
    `select from pg_index where indexrelid = to_regclass('${schema}.${index}') and not indisvalid`,
  );
  if (rows.length > 0) await run(`drop index concurrently ${schema}.${index}`);
}

/** Names of the numbered files that the database lacks, oldest first. Only reads. */
export async function pendingMigrations(
  db: Knex,
  schema: Pick<Schema, "migrations" | "ownMigrations"> = {
    migrations: migrationsFolder,
    ownMigrations: ownMigrationsFolder,
  },
): Promise<string[]> {
  const own = await migrationNames(schema.ownMigrations);
  const known = [...(await migrationNames(schema.migrations)), ...own.map((name) => ownPrefix + name)];
  const applied = new Set(await appliedMigrations(db, schema.migrations));
  return known.filter((name) => !applied.has(name));
}

/** Names of applied migrations that this version does not know. Merchants may delete theirs. Only reads. */
export async function newerMigrations(db: Knex, migrations: URL = migrationsFolder): Promise<string[]> {
  return unknownMigrations(await appliedMigrations(db, migrations), migrations);
}

/** Migrations that this version does not know, without the merchant's. */
export async function unknownMigrations(
  names: readonly string[],
  migrations: URL = migrationsFolder,
): Promise<string[]> {
  const known = new Set(await migrationNames(migrations));
  return names.filter((name) => !known.has(name) && !name.startsWith(ownPrefix));
}

/** A migration that this version does not know and must not run with. */
export interface RefusingMigration {
  name: string;
  /** The migration that a program has to know to run with it. */
  needs: string;
}

/**
 * Applied migrations of a newer version that removed something this one may need: they name, by a line `-- needs NAME`,
 * a migration that this version does not know either. All others only add, so processes of this version keep running
 * with them (docs/upgrading.md). Only reads.
 */
export async function refusingMigrations(db: Knex, migrations: URL = migrationsFolder): Promise<RefusingMigration[]> {
  if (!(await tableExists(db, ledger))) return [];
  const known = new Set(await migrationNames(migrations));
  // As JSON, since a database that an earlier version migrated last has no such column.
  const { rows } = await db.raw<{ rows: RefusingMigration[] }>(
    `select name, to_jsonb(m) ->> 'needs' as needs from ${ledger} m
     where to_jsonb(m) ->> 'needs' is not null order by id`,
  );
  return rows.filter(({ name, needs }) => !name.startsWith(ownPrefix) && !known.has(name) && !known.has(needs));
}

/** The migration that a program has to know to run with this file: its line `-- needs NAME`. */
const neededBy = (text: string): string | null => /^-- needs (\d{4}_\w+)$/m.exec(text)?.[1] ?? null;

interface NumberedFile extends PendingMigration {
  file: SqlFile;
}

/** Whether a file's statements run by themselves, outside a transaction. */
export const isOnlineText = (text: string): boolean => /^-- online$/m.test(text.split("\n", 1)[0] ?? "");

async function numberedFiles(folder: URL, prefix: string): Promise<NumberedFile[]> {
  return Promise.all(
    (await migrationNames(folder)).map(async (name) => {
      const file = await readSqlFile(new URL(`${name}.sql`, folder));
      return { name: prefix + name, file, isOnline: isOnlineText(file.text) };
    }),
  );
}

interface NextFiles {
  now: NumberedFile[];
  /** The online file after them. */
  online: NumberedFile | null;
  /** How many files of transactions come after that one, and build on it. */
  later: number;
}

/** The next of the pending files, in their order. Online files that none builds on block nothing. */
function nextFiles(pending: readonly NumberedFile[]): NextFiles {
  const at = pending.findIndex(({ isOnline }) => isOnline);
  const now = at < 0 ? [...pending] : pending.slice(0, at);
  const later = at < 0 ? [] : pending.slice(at).filter(({ isOnline }) => !isOnline);
  return { now, online: pending[at] ?? null, later: later.length };
}

const namesOf = (files: readonly NumberedFile[]): string[] => files.map(({ name }) => name);

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

/** The name of the last numbered file of this program. */
export async function lastMigration(migrations: URL = migrationsFolder): Promise<string> {
  const last = (await migrationNames(migrations)).at(-1);
  if (last === undefined) throw new Error("there are no migrations");
  return last;
}

/**
 * Names of applied migrations in their order, as this version numbers them: the schema can be made again by them. Of a
 * database of version 0.1 the files that make the same. Throws `ConfigurationError` where it is older. Only reads.
 */
export async function appliedMigrations(db: Knex, migrations: URL = migrationsFolder): Promise<string[]> {
  if (!(await tableExists(db, ledger))) return [];
  const names = await db(ledger).orderBy("id").pluck<string[]>("name");
  if (!(await isOfVersion01(db))) return names;
  if (!names.includes(lastOfVersion01)) {
    throw new ConfigurationError(
      `The database has the tables of an early version (up to ${names.at(-1) ?? "none"}). Run ` +
        `"${tallyhook("migrate")}" of version 0.1.0 first, then that of this version.`,
    );
  }
  const { text } = await readSqlFile(new URL("from-version-0.1.sql", migrations));
  return [...text.matchAll(/'(\d{4}_\w+)'/g)].map(([, name]) => name ?? "");
}

/** The identity of this database: when it was first migrated, to the microsecond. Its copies have the same. */
export async function databaseName(db: Knex): Promise<string> {
  const { rows } = await db.raw<{ rows: [{ name: string | null }] }>(
    `select extract(epoch from min(applied_at))::text as name from ${ledger}`,
  );
  return rows[0].name ?? "";
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

/** Version 0.1 recorded its 43 migrations in knex's own tables, of which this is one. */
const isOfVersion01 = async (db: Knex): Promise<boolean> => tableExists(db, `${ledger}_lock`);

/** The first numbered files make the schema of version 0.1, so they are recorded there as applied. */
async function makeLedger(trx: Knex.Transaction, migrations: URL): Promise<void> {
  const isOld = await isOfVersion01(trx);
  if (isOld) {
    await appliedMigrations(trx, migrations);
    await trx.raw(`drop table ${ledger}, ${ledger}_lock, tallyhook_schema_text`);
  }
  await trx.raw(
    `create table if not exists ${ledger} (
       id bigint generated always as identity primary key,
       name text not null unique,
       applied_at timestamptz not null default now()
     )`,
  );
  // Not by `if not exists`: that would lock the table, which every start reads, each time.
  if (!(await trx.schema.hasColumn(ledger, "needs"))) {
    await trx.raw(
      `alter table ${ledger} add column needs text;
       comment on column ${ledger}.needs is 'Programs that do not know this migration must not start any more.'`,
    );
  }
  if (isOld) await runSqlFile(trx, await readSqlFile(new URL("from-version-0.1.sql", migrations)));
}
