import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Knex } from "knex";
import { startTemporaryServer } from "../../../platform/embedded/temporary-server.ts";
import type { Log } from "../../../platform/log.ts";
import { TallyhookError } from "../../../platform/errors.ts";
import { createDatabase } from "../../../platform/postgres/pool.ts";
import { findClientPrograms } from "../../../platform/postgres/client-programs.ts";
import type { MigrationStep } from "../../../platform/postgres/migration-session.ts";
import { changedObjects, migratedSchemas, readLiveObjects } from "../../../platform/postgres/schema-objects.ts";
import { runOn } from "../../../platform/postgres/sql-file.ts";
import { registerSecret } from "../../../platform/redaction.ts";
import type { Answers } from "../../../app/answers.ts";
import { migrateSchema } from "../../schema.ts";
import type { Manifest } from "../backup/manifest.ts";
import { differingTables, fillDatabase, readWholeBackup } from "../backup/restore-backup.ts";
import { planBackup, writeBackup } from "../backup/take-backup.ts";
import { type HeldLock, watchLockTimes } from "./lock-times.ts";

export interface RehearsalDeps {
  /** The database that is to be upgraded. Only read. */
  source: Knex;
  /** Leads to it, past a pooler. */
  url: string;
  /** Where the copy's server gets a folder. */
  dataDir: string;
  log: Log;
  ask: Pick<Answers, "closedMonths">;
}

export interface RehearsalOptions {
  /** The folder of a backup to restore; by default the database is copied now. */
  backup?: string | undefined;
  /** Where pg_dump and pg_restore are; where they are likely to be without. */
  pgBin?: string | undefined;
  /** Tallyhook's version. */
  version: string;
  /** Gets a line for a person at each stage. */
  say(line: string): void;
  /** Aborts the rehearsal. It then rejects with the signal's reason, when the copy is removed. */
  signal: AbortSignal;
}

export interface Rehearsal {
  applied: string[];
  replaced: string[];
  /** Rows of the copy by table. */
  rows: Readonly<Record<string, number>>;
  steps: readonly MigrationStep[];
  locks: HeldLock[];
  closes: RehearsedCloses;
  /** Gaps of the rehearsal, a sentence each. */
  gaps: string[];
}

export interface RehearsedCloses {
  /** Closed months whose seal holds afterwards. */
  sealed: string[];
  /** Reports of closed months that were computed before and after, with the same result. */
  same: number;
  /** Problems that an upgrade would cause, a sentence each. */
  problems: string[];
}

/** Months whose reports are computed again: each takes all reports twice. */
const recomputedMonths = 3;

/**
 * Restores a backup into a server of its own, by default one of this moment, migrates that copy with this version, and
 * removes it. Times each step and each lock, and checks that closed months keep their seals and that their reports give
 * the same results for the same rows. Objects that the copy's server cannot restore, such as an extension, are gaps.
 * Throws the errors of the backup and the migration; the source is never changed.
 */
export async function rehearse(
  { source, url, dataDir, log, ask }: RehearsalDeps,
  { say, signal, ...options }: RehearsalOptions,
): Promise<Rehearsal> {
  signal.throwIfAborted();
  const server = await startTemporaryServer({
    parent: dataDir,
    kind: "rehearsal",
    log,
    // A statement that fails would be logged with its values.
    settings: { log_min_error_statement: "panic", log_error_verbosity: "terse" },
  });
  registerSecret(server.url);
  // A long statement ends with its server.
  const stop = () => void server.remove().catch(() => {});
  signal.addEventListener("abort", stop);
  const target = createDatabase({
    url: server.url,
    poolMax: 3,
    applicationName: "tallyhook upgrade",
  });
  try {
    say(`The copy is in ${server.dataDir}, which only its server's user can read, and is removed at the end.`);
    const folder = options.backup ?? join(server.dataDir, "backup");
    if (options.backup === undefined) {
      await mkdir(folder, { mode: 0o700 });
      await copyDatabase({ source, url }, { ...options, folder, signal });
    }
    const manifest = await readWholeBackup(folder);
    const gaps = await fillCopy({ target, url: server.url }, { ...options, folder, manifest, signal });
    await adoptDefinitions(source, target);
    const sum = Object.values(manifest.rows).reduce((total, n) => total + n, 0);
    say(`All ${sum} rows as of ${manifest.takenAt} are restored. Migrating the copy …`);
    return { rows: manifest.rows, ...(await migrateCopy({ target, ...ask }, { gaps, say, signal })) };
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener("abort", stop);
    await target.destroy().catch(() => {});
    await server.remove();
  }
}

const copyDatabase = (
  { source, url }: Pick<RehearsalDeps, "source" | "url">,
  { pgBin, ...options }: Pick<RehearsalOptions, "pgBin" | "version" | "signal"> & { folder: string },
): Promise<unknown> =>
  source.transaction(async (trx) => writeBackup({ url, trx }, { ...options, ...(await planBackup(trx, pgBin)) }), {
    isolationLevel: "repeatable read",
    readOnly: true,
  });

/** Returns the gaps of the copy, a sentence each. Throws `TallyhookError` where it lacks a table of Tallyhook. */
async function fillCopy(
  { target, url }: { target: Knex; url: string },
  {
    folder,
    manifest,
    pgBin,
    signal,
  }: Pick<RehearsalOptions, "pgBin" | "signal"> & { folder: string; manifest: Manifest },
): Promise<string[]> {
  const ofDump = Number.parseInt(manifest.postgres.pgDump, 10) * 10_000;
  const { pgRestore } = await findClientPrograms(ofDump, pgBin);
  // Without flags it continues after a failure, such as at an extension that the copy's server does not have.
  const { err } = await fillDatabase(url, { pgRestore, folder, flags: [], signal });
  signal.throwIfAborted();
  const failures = [...err.matchAll(/^pg_restore: error: (.*)$/gm)].map(([, why]) => why);
  const differing = await differingTables(target, manifest);
  const ours = differing.find(({ table }) => isOurs(table));
  if (ours !== undefined) {
    throw new TallyhookError(`The copy is not whole: ${[ours.problem, ...failures.slice(0, 1)].join(". ")}.`);
  }
  return [
    ...failures.map((why) => `Not in the copy: ${why}.`),
    ...differing.map(({ problem }) => `In the copy ${problem}.`),
  ];
}

function isOurs(table: string): boolean {
  const [schema = ""] = table.split(".");
  return (migratedSchemas as readonly string[]).includes(schema) || table.startsWith("public.tallyhook_");
}

/**
 * Records the definitions of the copy as made by `migrate`, except those changed manually in the source: a server words
 * some otherwise when it reads its own text again. Without such a record there are none to adopt.
 */
async function adoptDefinitions(source: Knex, target: Knex): Promise<void> {
  if ((await changedObjects(target)) === null) return;
  const changed = (await changedObjects(source)) ?? [];
  for (const { kind, name, sha256 } of await readLiveObjects(target)) {
    if (changed.some((each) => each.kind === kind && each.name === name)) continue;
    await target("tallyhook_schema_objects").where({ kind, name }).update({ sha256 });
  }
}

async function migrateCopy(
  { target, closedMonths }: { target: Knex } & Pick<Answers, "closedMonths">,
  { gaps, say, signal }: Pick<RehearsalOptions, "say" | "signal"> & { gaps: string[] },
): Promise<Omit<Rehearsal, "rows">> {
  const before = {
    verified: await closedMonths?.verify(target).catch(() => null),
    reports: await closedMonths?.recompute(target, recomputedMonths),
    seals: await target("reports.closes").orderBy("month").pluck<string[]>("sha256"),
  };
  signal.throwIfAborted();
  const times = await watchLockTimes(runOn(target));
  const { applied, replaced } = await migrateSchema(target, { watcher: times });
  say("The copy is migrated. Checking the closed months …");
  signal.throwIfAborted();
  const closes: RehearsedCloses = { sealed: [], same: 0, problems: [] };
  const after = await closedMonths?.verify(target);
  const known = new Set(before.verified?.closes.flatMap(({ problems }) => problems));
  for (const [n, { month, sha256, problems }] of (after?.closes ?? []).entries()) {
    const added = problems.filter((problem) => !known.has(problem));
    if (sha256 !== before.seals[n]) added.push("its seal is another one");
    if (added.length === 0) closes.sealed.push(month);
    closes.problems.push(...added.map((problem) => `The close of ${month}: ${problem}.`));
  }
  if (after !== undefined && after.closes.length !== before.seals.length) {
    closes.problems.push(`${before.seals.length} months were closed, and ${after.closes.length} are afterwards.`);
  }
  const computed = await closedMonths?.recompute(target, recomputedMonths, before.reports);
  for (const [report, was] of before.reports ?? []) {
    const now = computed?.get(report);
    if ("why" in was) {
      gaps.push(`The report ${report} of a closed month is not compared: ${was.why}.`);
    } else if (now === undefined || "why" in now) {
      const why = now === undefined ? "the month is not there" : now.why;
      closes.problems.push(`The report ${report} of a closed month cannot be computed after the upgrade: ${why}.`);
    } else if (now.sha256 === was.sha256) closes.same++;
    else {
      closes.problems.push(`The report ${report} of a closed month says something else after the upgrade.`);
    }
  }
  return { applied, replaced, steps: times.steps, locks: times.locks(), closes, gaps };
}
