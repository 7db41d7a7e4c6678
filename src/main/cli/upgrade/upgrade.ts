import type { Command } from "commander";
import type { Knex } from "knex";
import pc from "picocolors";
import { tallyhook } from "../../../platform/command-line.ts";
import { ConfigurationError, TallyhookError, exitCodes } from "../../../platform/errors.ts";
import { newerMigrations } from "../../../platform/postgres/migrations.ts";
import { counted, durationText, someOf } from "../../../platform/readable-text.ts";
import { pendingSchema } from "../../../app/schema.ts";
import type { CliContext } from "../../../app/cli/context.ts";
import { type Columns, tableText } from "../../../app/cli/table.ts";
import { untilSignal } from "../../../app/cli/until-signal.ts";
import type { MigrationStep } from "../../../platform/postgres/migration-session.ts";
import type { HeldLock } from "./lock-times.ts";
import type { Rehearsal } from "./rehearse.ts";

interface UpgradeOptions {
  rehearse?: boolean;
  backup?: string;
  pgBin?: string;
  json?: boolean;
}

export function registerUpgrade(program: Command, context: CliContext): void {
  program
    .command("upgrade")
    .option("--rehearse", "migrate a copy, and time each step and lock")
    .option("--backup <folder>", "with --rehearse: restore this backup, in place of a copy of this moment")
    .option("--pg-bin <folder>", "with --rehearse: where pg_dump and pg_restore are, if they are not found")
    .option("--json", "print one JSON object")
    .action(async (options: UpgradeOptions) => {
      if (options.rehearse === true) await printRehearsal(context, program.version() ?? "", options);
      else await printPending(context, options.json === true);
    });
}

async function printPending({ withRuntime, stdout }: CliContext, json: boolean): Promise<void> {
  await withRuntime(
    "upgrade",
    async (runtime) => {
      const db = await runtime.db();
      await refuseNewer(db);
      const pending = await pendingSchema(db, runtime.parts);
      if (json) {
        stdout.write(`${JSON.stringify({ pending })}\n`);
        return;
      }
      if (pending.length === 0) {
        stdout.write("Nothing to upgrade: the database is that of this version.\n");
        return;
      }
      stdout.write(
        `The database lacks ${someOf(pending, 10)}.\n` +
          `Rehearse it on a copy:        ${tallyhook("upgrade --rehearse")}\n` +
          `Do it, while all else runs:   ${tallyhook("migrate")}\n` +
          'Then replace the processes (docs/operations.md, "Upgrading without downtime").\n',
      );
    },
    { logLevel: "warn" },
  );
}

async function refuseNewer(db: Knex): Promise<void> {
  const newer = await newerMigrations(db);
  if (newer.length === 0) return;
  throw new ConfigurationError(
    `The database was migrated by a newer version of Tallyhook (it has ${someOf(newer)}). Run that version or a ` +
      "later one.",
  );
}

async function printRehearsal(
  context: CliContext,
  version: string,
  { backup, pgBin, json }: UpgradeOptions,
): Promise<void> {
  const { stdout, stderr } = context;
  const stop = new AbortController();
  void untilSignal().then((signal) =>
    stop.abort(new TallyhookError(`Stopped by ${signal}. The copy is removed; nothing was changed.`)),
  );
  const rehearsal = await context.withRuntime(
    "upgrade",
    async (runtime) => {
      const source = await runtime.db();
      await refuseNewer(source);
      const { rehearse } = await import("./rehearse.ts");
      return rehearse(
        {
          source,
          url: await runtime.directUrl(),
          dataDir: runtime.config.dataDir,
          log: runtime.log,
          ask: runtime.ask,
        },
        {
          backup,
          pgBin,
          version,
          signal: stop.signal,
          say: (line) => stderr.write(`tallyhook: ${line}\n`),
        },
      );
    },
    { logLevel: "warn" },
  );
  stdout.write(json === true ? `${JSON.stringify(rehearsal)}\n` : textOf(rehearsal));
  if (rehearsal.closes.problems.length > 0) process.exitCode = exitCodes.differs;
}

/** Receivers answer 503 when the inbox takes longer (`flushTimeoutMs` in runtime.ts). */
const longLockMs = 5_000;

function textOf({ applied, replaced, steps, locks, closes, gaps }: Rehearsal): string {
  const files = counted(replaced.length, "file");
  const lines = [
    applied.length + replaced.length === 0
      ? "Nothing to upgrade: the database is that of this version."
      : `Applied: ${applied.join(", ") || "no numbered file"}. Functions, views and triggers of ${files} were ` +
        "replaced.",
    "",
    tableText(stepColumns, steps).trimEnd(),
  ];
  if (locks.length > 0) lines.push(tableText(lockColumns, locks).trimEnd());
  else lines.push("No lock blocks others from a table.");
  const longest = locks[0];
  if (longest !== undefined && longest.heldMs > longLockMs) {
    lines.push(
      pc.yellow(
        `${longest.table} would be locked for about ${shortTime(longest.heldMs)}: writes to it wait that long. Where it ` +
          "is the inbox, webhooks are answered 503 and sent again. Choose a quiet hour.",
      ),
    );
  }
  lines.push(
    "The times are this machine's, on a copy without other load: expect other figures in production.",
    "",
    closesText(closes),
    ...closes.problems.map((problem) => pc.red(problem)),
    ...gaps.map((gap) => pc.yellow(gap)),
    "The copy is removed.",
  );
  return `${lines.join("\n")}\n`;
}

const stepColumns: Columns<MigrationStep> = {
  step: ({ file, line, statement, isOnline }) =>
    `${file}${line === null ? "" : `:${line}`}  ${statement}${isOnline ? "  (online)" : ""}`.split("\n"),
  "on the copy": ({ ms }) => shortTime(ms),
};

const lockColumns: Columns<HeldLock> = {
  "locked table": ({ table }) => table,
  "keeps out": ({ stopsReaders }) => (stopsReaders ? "readers and writers" : "writers"),
  "on the copy": ({ heldMs }) => shortTime(heldMs),
  "taken by": ({ takenBy }) => takenBy.split("\n"),
};

function closesText({ sealed, same, problems }: Rehearsal["closes"]): string {
  if (problems.length > 0) return "CLOSED MONTHS CHANGE:";
  if (sealed.length === 0) return "No month is closed.";
  const parts = [`${counted(sealed.length, "closed month")} verified: what was sealed is unchanged.`];
  if (same > 0) {
    parts.push(`${counted(same, "report")} of closed months, computed again, say the same as before.`);
  }
  return parts.join(" ");
}

const shortTime = (ms: number): string =>
  ms < 1_000 ? `${Math.max(1, Math.round(ms))} ms` : ms < 60_000 ? `${(ms / 1_000).toFixed(1)} s` : durationText(ms);
