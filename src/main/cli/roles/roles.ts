import { type Command, InvalidArgumentError } from "commander";
import { tallyhook } from "../../../platform/command-line.ts";
import { UsageError } from "../../../platform/errors.ts";
import { lastMigration } from "../../../platform/postgres/migrations.ts";
import type { CliContext } from "../../../app/cli/context.ts";
import { rolesSql } from "./roles-sql.ts";

export function registerRoles(program: Command, context: CliContext): void {
  program
    .command("roles")
    .option("--sql", "print it; nothing is run")
    .option(
      "--prefix <name>",
      "what the roles' names begin with: one for each deployment of a server",
      parsePrefix,
      "tallyhook",
    )
    .action(async ({ sql, prefix }: { sql?: boolean; prefix: string }) => {
      if (sql !== true) {
        throw new UsageError(
          `Say --sql: "${tallyhook("roles --sql")}" prints the SQL, for psql to run (docs/operations.md, "Database ` +
            'roles").',
        );
      }
      context.stdout.write(rolesSql({ prefix, migration: await lastMigration() }));
    });
}

/** With the longest ending it must fit into the 63 bytes of a name. */
const prefixForm = /^[a-z_][a-z0-9_]{0,52}$/;

function parsePrefix(text: string): string {
  if (prefixForm.test(text) && !text.startsWith("pg_")) return text;
  throw new InvalidArgumentError(
    "Use up to 53 lower-case letters, digits and underscores, not beginning with a digit or pg_.",
  );
}
