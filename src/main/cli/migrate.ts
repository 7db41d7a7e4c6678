import type { Command } from "commander";
import { wholeNumber } from "../../app/people/fields.ts";
import { parserOf } from "../../app/cli/command.ts";
import type { CliContext } from "../../app/cli/context.ts";
import { migrateAll } from "../../app/processes/migrate-all.ts";
import { defaultLockPatience } from "../../platform/postgres/lock-waits.ts";
import { counted, someOf } from "../../platform/readable-text.ts";

export function registerMigrate(program: Command, context: CliContext): void {
  program
    .command("migrate")
    .option("--json", "print one JSON object")
    .option(
      "--wait <minutes>",
      "how long to keep trying for a lock that others hold",
      parserOf(wholeNumber(0, 1_440, "minutes")),
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
