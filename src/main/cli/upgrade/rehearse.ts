import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Knex } from "knex";
import { startTemporaryServer } from "../../../platform/embedded/temporary-server.ts";
import type { Log } from "../../../platform/log.ts";
import { createDatabase } from "../../../platform/postgres/pool.ts";
import { runOn } from "../../../platform/postgres/sql-file.ts";
import { liftLimits } from "../../../platform/postgres/transactions.ts";
import { registerSecret } from "../../../platform/redaction.ts";
import { optionalRooms } from "../../optional-rooms.ts";
import { migrateSchema } from "../../schema.ts";
import { copySample } from "./copy-sample.ts";
import { adoptDefinitions, makeFormerSchema } from "./former-schema.ts";
import { type HeldLock, type RehearsedStep, type TableSize, watchLockTimes } from "./lock-times.ts";

export interface RehearsalDeps {
  /** The database that is to be upgraded. Only read, in one transaction. */
  source: Knex;
  /** Where the copy's server gets a folder. */
  dataDir: string;
  log: Log;
}

export interface RehearsalOptions {
  /** The most rows of a table that are copied, as a rule. */
  rows: number;
  /** Gets a line for a person at each stage. */
  say(line: string): void;
  /** Aborts the rehearsal. It then rejects with the signal's reason, when the copy is removed. */
  signal: AbortSignal;
}

export interface Rehearsal {
  applied: string[];
  replaced: string[];
  tables: ({ table: string } & TableSize)[];
  steps: readonly RehearsedStep[];
  locks: HeldLock[];
  closes: RehearsedCloses;
  /** What the rehearsal says nothing about, a sentence each. */
  gaps: string[];
}

export interface RehearsedCloses {
  /** Closed months of which everything was copied, and whose seal holds afterwards. */
  sealed: string[];
  /** Closed months of which only the seal was copied. */
  sealOnly: string[];
  /** Reports of closed months that were computed before and after, with the same result. */
  same: number;
  /** What an upgrade would break, a sentence each. */
  problems: string[];
}

/** Months whose reports are computed again: each takes all reports twice. */
const recomputedMonths = 3;

/**
 * Makes a copy of the schema and of a part of the rows in a server of its own, migrates it with this version, and
 * removes it. Times each step and each lock, and checks that closed months keep what was sealed and that their reports
 * say the same of the same rows. Throws what the migration throws; the source is never changed.
 */
export async function rehearse(
  { source, dataDir, log }: RehearsalDeps,
  { rows, say, signal }: RehearsalOptions,
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
    say(
      `The copy is in ${server.dataDir}, which only its server's user can read, and is removed at the end.`,
    );
    const folder = join(server.dataDir, "former");
    await mkdir(folder, { mode: 0o700 });
    return await rehearseOn(source, target, { folder, rows, say, signal });
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener("abort", stop);
    await target.destroy().catch(() => {});
    await server.remove();
  }
}

async function rehearseOn(
  source: Knex,
  target: Knex,
  { folder, rows, say, signal }: RehearsalOptions & { folder: string },
): Promise<Rehearsal> {
  const room = optionalRooms.reports?.closes;
  const { gaps, sample, seals } = await source.transaction(
    async (trx) => {
      await liftLimits(trx);
      const unmade = await makeFormerSchema(trx, target, folder);
      signal.throwIfAborted();
      const copied = await copySample(trx, target, { rows, signal });
      await adoptDefinitions(trx, target);
      const found = await trx("reports.closes").select("sha256").orderBy("month");
      return { gaps: [...unmade, ...copied.problems], sample: copied, seals: found };
    },
    { isolationLevel: "repeatable read", readOnly: true },
  );
  const tables = [...sample.sizes].map(([table, size]) => ({ table, ...size }));
  say(sizeText(tables));
  const before = {
    verified: await room?.verify(target).catch(() => null),
    reports: await room?.recompute(target, recomputedMonths),
  };
  signal.throwIfAborted();
  const times = await watchLockTimes(runOn(target), sample.sizes);
  const { applied, replaced } = await migrateSchema(target, { watcher: times });
  say("The copy is migrated. Checking the closed months …");
  signal.throwIfAborted();
  const closes: RehearsedCloses = { sealed: [], sealOnly: [], same: 0, problems: [] };
  const after = await room?.verify(target);
  const known = new Set(before.verified?.closes.flatMap(({ problems }) => problems));
  for (const [n, { month, snapshot, sha256, problems }] of (after?.closes ?? []).entries()) {
    const isWhole = sample.closes.includes(snapshot);
    const added = isWhole ? problems.filter((problem) => !known.has(problem)) : [];
    if (sha256 !== (seals[n] as { sha256: string } | undefined)?.sha256)
      added.push("its seal is another one");
    if (added.length === 0) closes[isWhole ? "sealed" : "sealOnly"].push(month);
    closes.problems.push(...added.map((problem) => `The close of ${month}: ${problem}.`));
  }
  if (after !== undefined && after.closes.length !== seals.length) {
    closes.problems.push(
      `${seals.length} months were closed, and ${after.closes.length} are afterwards.`,
    );
  }
  const computed = await room?.recompute(target, recomputedMonths, before.reports);
  for (const [report, was] of before.reports ?? []) {
    const now = computed?.get(report);
    if ("why" in was) {
      gaps.push(`The report ${report} of a closed month is not compared: ${was.why}.`);
    } else if (now === undefined || "why" in now) {
      const why = now === undefined ? "the month is not there" : now.why;
      closes.problems.push(
        `The report ${report} of a closed month cannot be computed after the upgrade: ${why}.`,
      );
    } else if (now.sha256 === was.sha256) closes.same++;
    else {
      closes.problems.push(
        `The report ${report} of a closed month says something else after the upgrade.`,
      );
    }
  }
  return { applied, replaced, tables, steps: times.steps, locks: times.locks(), closes, gaps };
}

function sizeText(tables: readonly TableSize[]): string {
  const [copied, real] = [
    tables.reduce((sum, each) => sum + each.copied, 0),
    tables.reduce((sum, each) => sum + each.real, 0),
  ];
  return copied === real
    ? `All ${copied} rows of ${tables.length} tables are copied. Migrating the copy …`
    : `${copied} of about ${real} rows of ${tables.length} tables are copied. Migrating the copy …`;
}
