import type { Command } from "commander";
import { migrateToLatest } from "../platform/migrations.ts";
import { migrateQueueSchema } from "../queue/backend.ts";
import type { Runtime } from "../runtime.ts";
import type { CliContext } from "./context.ts";

export function registerMigrate(program: Command, context: CliContext): void {
  program
    .command("migrate")
    .description("bring the database up to date (also the job queue's own schema)")
    .option("--json", "print one JSON object")
    .action(async ({ json }: { json?: boolean }) => {
      const applied = await context.withRuntime("migrate", migrateAll, { logLevel: "warn" });
      if (json === true) {
        context.stdout.write(`${JSON.stringify({ applied })}\n`);
        return;
      }
      const text = applied.length === 0 ? "nothing to do" : applied.join(", ");
      context.stdout.write(`Migrated: ${text}.\n`);
    });
}

/** Brings both schemas up to date; gives back our own migrations that were applied. Idempotent. */
export async function migrateAll(runtime: Runtime): Promise<string[]> {
  const applied = await migrateToLatest(await runtime.db());
  if (runtime.config.queueBackend === "postgres") {
    await migrateQueueSchema(await runtime.databaseUrl());
  }
  return applied;
}
