import type { Command } from "commander";
import { TallyhookError } from "../../../platform/errors.ts";
import { createDatabase } from "../../../platform/postgres/pool.ts";
import { counted } from "../../../platform/readable-text.ts";
import { wholeNumber } from "../../../app/people/fields.ts";
import { parserOf } from "../../../app/cli/command.ts";
import type { CliContext } from "../../../app/cli/context.ts";
import { untilSignal } from "../../../app/cli/until-signal.ts";
import { takeBackup } from "./take-backup.ts";

interface BackupCommandOptions {
  keep?: number;
  pgBin?: string;
  json?: boolean;
}

export function registerBackup(program: Command, context: CliContext): void {
  program
    .command("backup")
    .argument("<directory>", "where the folder is made, such as /var/backups/tallyhook")
    .option(
      "--keep <number>",
      "keep this many backups of this database, the new one included; older ones are removed once it is verified",
      parserOf(wholeNumber(1, 100_000)),
    )
    .option("--pg-bin <folder>", "where pg_dump and pg_restore are, if they are not found")
    .option("--json", "print one JSON object")
    .action((directory: string, options: BackupCommandOptions) =>
      backUp(context, program.version() ?? "", directory, options),
    );
}

async function backUp(
  context: CliContext,
  version: string,
  directory: string,
  { keep = Number.POSITIVE_INFINITY, pgBin, json }: BackupCommandOptions,
): Promise<void> {
  const stop = new AbortController();
  void untilSignal().then((signal) =>
    stop.abort(new TallyhookError(`Stopped by ${signal}. Nothing of this backup is left behind.`)),
  );
  const { folder, manifest, unreadable, removed, isNoted } = await context.withRuntime(
    "backup",
    async (runtime) => {
      const url = await runtime.directUrl();
      const db = createDatabase({
        url,
        poolMax: 1,
        applicationName: "tallyhook backup",
        log: runtime.log,
      });
      try {
        return await takeBackup({ url, db }, { directory, keep, pgBin, version, signal: stop.signal });
      } finally {
        await db.destroy();
      }
    },
    { logLevel: "warn" },
  );
  if (json === true) {
    context.stdout.write(`${JSON.stringify({ folder, manifest, unreadable, removed })}\n`);
    return;
  }
  const { rows, dump } = manifest;
  const total = Object.values(rows).reduce((sum, n) => sum + n, 0);
  context.stdout.write(
    `${folder}: ${counted(total, "row")} of ${Object.keys(rows).length} tables, ${dump.bytes} bytes, read back and ` +
      "whole.\n",
  );
  for (const { schema, grant } of unreadable) {
    context.stdout.write(
      `Left out: the schema ${schema}, which the user of DATABASE_URL may not read. To have it in the next backup, ` +
        `run as its owner or a superuser: ${grant}\n`,
    );
  }
  if (!isNoted) {
    context.stdout.write(
      "The database takes no row, so it does not know of this backup; backup_overdue may come although it is made.\n",
    );
  }
  if (removed.length > 0) context.stdout.write(`Removed: ${removed.join(", ")}.\n`);
}
