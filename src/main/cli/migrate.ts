import type { Command } from "commander";
import { counted } from "../../platform/readable-text.ts";
import { type LockPatience, defaultLockPatience } from "../../platform/postgres/lock-waits.ts";
import type { Migrated } from "../../platform/postgres/migrations.ts";
import { createDatabase } from "../../platform/postgres/pool.ts";
import { someOf } from "../../platform/readable-text.ts";
import { migrateQueueSchema } from "../../core/queue/backend.ts";
import type { Runtime } from "../../app/runtime.ts";
import { migrateSchema } from "../schema.ts";
import { wholeNumber } from "../../app/cli/arguments.ts";
import type { CliContext } from "../../app/cli/context.ts";

export function registerMigrate(program: Command, context: CliContext): void {
  program
    .command("migrate")
    .description("bring the schema of the database up to date, and that of the job queue in it")
    .option("--json", "print one JSON object")
    .option(
      "--wait <minutes>",
      "how long to keep trying for a lock that others hold",
      wholeNumber(0, 1_440, "minutes"),
      defaultLockPatience.waitMs / 60_000,
    )
    .action(async ({ json, wait }: { json?: boolean; wait: number }) => {
      const patience = {
        waitMs: wait * 60_000,
        onWait: (line: string) => context.stderr.write(`tallyhook: ${line}\n`),
      };
      const { applied, replaced } = await context.withRuntime("migrate", (runtime) => migrateAll(runtime, patience), {
        logLevel: "warn",
      });
      if (json === true) {
        context.stdout.write(`${JSON.stringify({ applied, replaced })}\n`);
        return;
      }
      const tables = applied.length === 0 ? "nothing to do" : applied.join(", ");
      context.stdout.write(`Migrated: ${tables}.\n`);
      if (replaced.length > 0) {
        const files = counted(replaced.length, "file");
        context.stdout.write(`Functions, views and triggers of ${files} were replaced: ${someOf(replaced)}.\n`);
      }
    });
}

/** Migrates our schema and the job queue's. Returns what changed in ours. Idempotent. */
export async function migrateAll(
  runtime: Pick<Runtime, "directUrl" | "log">,
  { onWait = (line) => runtime.log.warn(line), ...patience }: Partial<LockPatience> = {},
): Promise<Migrated> {
  // Past a pooler, whose time limits are made for short statements.
  const url = await runtime.directUrl();
  const { log } = runtime;
  // One migrates; the other is asked whom it waits for.
  const db = createDatabase({ url, poolMax: 2, applicationName: "tallyhook migrate", log });
  try {
    const done = await migrateSchema(db, { ...patience, onWait });
    // Also where the queue is on Redis today: a start without REDIS_URL would find no queue.
    await migrateQueueSchema(url, { ...patience, onWait });
    return done;
  } finally {
    await db.destroy();
  }
}
