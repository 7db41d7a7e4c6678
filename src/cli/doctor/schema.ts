import { newerMigrations, someOf } from "../../platform/migrations.ts";
import { changedObjects } from "../../platform/schema-text.ts";
import type { ChangedObject } from "../../platform/schema-text.ts";
import type { Runtime } from "../../runtime.ts";
import { pendingSchema } from "../../schema.ts";
import { failed, ok, skipped, warning } from "./finding.ts";
import type { Finding } from "./finding.ts";

/** Whether the database answers, and has the tables of this version. */
export async function checkDatabase(runtime: Pick<Runtime, "db">): Promise<Finding> {
  const db = await runtime.db();
  const pending = await pendingSchema(db);
  if (pending.length > 0) {
    return failed("database", `lacks ${someOf(pending)}`, 'run "npx tallyhook migrate"');
  }
  const newer = await newerMigrations(db);
  return newer.length === 0
    ? ok("database", "answers, all migrations are applied")
    : warning(
        "database",
        `was migrated by a newer version (it has ${someOf(newer)})`,
        "run that version here as well: this one does not know what changed",
      );
}

/** Whether functions, views and triggers are what the program made. The database must be migrated. */
export async function checkSchemaText(runtime: Pick<Runtime, "db">): Promise<Finding> {
  const check = "schema text";
  const changed = await changedObjects(await runtime.db());
  if (changed === null) {
    return skipped(
      check,
      'nothing is known of it on this major version of PostgreSQL; "npx tallyhook migrate" notes it from now on',
    );
  }
  if (changed.length === 0)
    return ok(check, "functions, views and triggers are as the program made them");
  const harmful = changed.filter(({ change }) => change !== "added");
  if (harmful.length === 0) {
    return warning(
      check,
      `not of this program: ${listed(changed)}`,
      "make sure that they change nothing that this program writes, or drop them",
    );
  }
  return failed(
    check,
    `not as the program made them: ${listed(changed)}`,
    'somebody changed them by hand, so reports and guards may say or allow something else: "npx tallyhook migrate" puts back the program\'s text',
  );
}

const listed = (objects: readonly ChangedObject[]): string =>
  someOf(objects.map(({ kind, name, change }) => `${kind} ${name} (${change})`));
