import type { Command } from "commander";
import { counted } from "../../platform/readable-text.ts";
import type { Migrated } from "../../platform/postgres/migrations.ts";
import { someOf } from "../../platform/readable-text.ts";
import { migrateQueueSchema } from "../../queue/backend.ts";
import type { Runtime } from "../runtime.ts";
import { migrateSchema } from "../schema.ts";
import type { CliContext } from "./context.ts";

export function registerMigrate(program: Command, context: CliContext): void {
  program
    .command("migrate")
    .description("bring the schema of the database up to date, and that of the job queue in it")
    .option("--json", "print one JSON object")
    .action(async ({ json }: { json?: boolean }) => {
      const { applied, replaced } = await context.withRuntime("migrate", migrateAll, {
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
        context.stdout.write(
          `Functions, views and triggers of ${files} were replaced: ${someOf(replaced)}.\n`,
        );
      }
    });
}

/** Migrates our schema and the job queue's. Returns what changed in ours. Idempotent. */
export async function migrateAll(runtime: Runtime): Promise<Migrated> {
  const done = await migrateSchema(await runtime.db());
  if (runtime.config.queueBackend === "postgres") {
    await migrateQueueSchema(await runtime.databaseUrl());
  }
  return done;
}
