import type { Command } from "commander";
import type { Knex } from "knex";
import { tallyhook } from "../../../platform/command-line.ts";
import { TallyhookError, UsageError } from "../../../platform/errors.ts";
import { createDatabase } from "../../../platform/postgres/pool.ts";
import { counted } from "../../../platform/readable-text.ts";
import type { Runtime } from "../../../app/runtime.ts";
import { aloneInRestore } from "../../../app/open-restore.ts";
import { restoredDatabase } from "../../../app/schema.ts";
import { commandActor, parsePerson } from "../../../app/cli/acting-person.ts";
import { instant } from "../../../app/people/fields.ts";
import { parserOf } from "../../../app/cli/command.ts";
import type { CliContext } from "../../../app/cli/context.ts";
import { migrateAll } from "../../../app/processes/migrate-all.ts";
import { untilSignal } from "../../../app/cli/until-signal.ts";
import { type Manifest, readManifest } from "./manifest.ts";
import { type RestoreOptions, erasedByLaterBackups, readIds, restoreBackup } from "./restore-backup.ts";
import { type RestoredFrom, type Settled, settleRestored } from "./settle-restored.ts";

interface RestoredOptions {
  ranUntil: Date;
  erased?: string;
  by?: string;
}

const ranUntilOption = [
  "--ran-until <time>",
  "when the lost system last worked: whatever happened by then was already sent to people and programs",
  parserOf(instant),
] as const;
const erasedOption = [
  "--erased <file>",
  "a file of customers to erase again, one id a line, from your register of requests",
] as const;
const byOption = [
  "--by <name>",
  "name of the person who does this, for the audit (default: this system's user, if a person)",
  parsePerson,
] as const;

export function registerRestore(program: Command, context: CliContext): void {
  program
    .command("restore")
    .argument("<backup>", "the folder of a backup")
    .requiredOption(...ranUntilOption)
    .option(...erasedOption)
    .option(...byOption)
    .option("--pg-bin <folder>", "where pg_restore is, if it is not found")
    .action((folder: string, options: RestoredOptions & { pgBin?: string }) => restore(context, folder, options));
  program
    .command("restored")
    .requiredOption("--taken-at <time>", "the moment that it shows", parserOf(instant))
    .requiredOption(...ranUntilOption)
    .option(...erasedOption)
    .option(...byOption)
    .action((options: RestoredOptions & { takenAt: Date }) => settle(context, options));
}

async function restore(
  context: CliContext,
  folder: string,
  { pgBin, ...options }: RestoredOptions & { pgBin?: string },
): Promise<void> {
  const actor = commandActor(context, options.by);
  const listed = options.erased === undefined ? [] : await readIds(options.erased);
  const stop = new AbortController();
  void untilSignal().then((signal) =>
    stop.abort(new TallyhookError(`Stopped by ${signal}. Drop the database, make it again, and restore again.`)),
  );
  await context.withRuntime(
    "restore",
    async (runtime) => {
      const takenAt = new Date((await readManifest(folder)).takenAt);
      assertOrder(takenAt, options.ranUntil, runtime.wallClock.now());
      const url = await runtime.directUrl();
      await aloneInRestore(url, async () => {
        const manifest = await fill(url, { folder, pgBin, signal: stop.signal });
        context.stdout.write(`Restored: the database as it was at ${manifest.takenAt}.\n`);
        await migrateAll(runtime);
        const later = await erasedByLaterBackups(folder, manifest);
        const erased = [...listed, ...later.erased];
        await settleAndTell(context, runtime, { ...options, takenAt, actor, erased });
        context.stdout.write(unreadText(later.unread));
      });
    },
    { logLevel: "warn" },
  );
}

async function fill(url: string, options: RestoreOptions): Promise<Manifest> {
  const db = createDatabase({ url, poolMax: 2, applicationName: "tallyhook restore" });
  try {
    return await restoreBackup({ url, db }, options);
  } finally {
    await db.destroy();
  }
}

async function settle(
  context: CliContext,
  { takenAt, ranUntil, ...options }: RestoredOptions & { takenAt: Date },
): Promise<void> {
  const actor = commandActor(context, options.by);
  const erased = options.erased === undefined ? [] : await readIds(options.erased);
  await context.withRuntime(
    "restored",
    async (runtime) => {
      assertOrder(takenAt, ranUntil, runtime.wallClock.now());
      await aloneInRestore(await runtime.directUrl(), async () => {
        await assertAlone(await runtime.db());
        await settleAndTell(context, runtime, { takenAt, ranUntil, actor, erased });
      });
    },
    { logLevel: "warn" },
  );
}

function assertOrder(takenAt: Date, ranUntil: Date, now: Date): void {
  if (takenAt > ranUntil) {
    throw new UsageError(
      `The backup is of ${takenAt.toISOString()}, later than --ran-until: the system worked then. Give a later time.`,
    );
  }
  // Until then no alert would be sent. A minute: clocks differ.
  if (ranUntil.getTime() > now.getTime() + 60_000) {
    throw new UsageError(
      `--ran-until is ${ranUntil.toISOString()}, and it is ${now.toISOString()}: what happens until then would ` +
        "never be alerted. Give the time when the lost system last worked.",
    );
  }
}

/** Throws `UsageError` where a process of the system is connected, as far as the database shows it. */
async function assertAlone(db: Knex): Promise<void> {
  const { rows } = await db.raw<{ rows: { name: string }[] }>(
    `select distinct application_name as name from pg_stat_activity
     where datname = current_database()
       and application_name ~ '^tallyhook (receiver|inbox|worker|queue|start|dashboard|handlers|forward)'
     order by 1`,
  );
  const [first] = rows;
  if (first === undefined) return;
  throw new UsageError(
    `"${first.name}" is connected to this database, so the database is in use and not one that was just restored. ` +
      "Stop all processes first: receiver, worker, dashboard, timers. Is DATABASE_URL the restored one?",
  );
}

async function settleAndTell({ stdout }: CliContext, runtime: Runtime, from: RestoredFrom): Promise<void> {
  const settled = await settleRestored(runtime, await restoredDatabase(runtime), from);
  stdout.write(settledText(settled, from));
}

/** The folders whose list of erased customers is unreadable. */
const unreadText = (folders: readonly string[]): string =>
  folders.length === 0
    ? ""
    : `The manifest of ${folders.join(", ")}, next to the backup, cannot be read. Customers who were erased since ` +
      `the backup and are recorded only there are in the database again: run "${tallyhook("customers erase ID")}" ` +
      "for each.\n";

/** The completed steps, and the steps left to a person. */
function settledText(
  { recipients, messages, digestItems, erasedAgain, isServiceAsked }: Settled,
  { ranUntil }: RestoredFrom,
): string {
  const held = recipients.filter(({ held }) => held > 0);
  const lines = [
    `What happened until ${ranUntil.toISOString()} is neither announced nor given to handlers and destinations again.`,
    `Marked as sent: ${counted(messages, "message")}, ${counted(digestItems, "item")} of daily lists.`,
    ...held.map(
      ({ name, held }) =>
        `${name}: ${counted(held, "change")} waited in the backup and may have been done since. Retry or skip each.`,
    ),
    ...(erasedAgain.length === 0 ? [] : [`Erased again: ${erasedAgain.join(", ")}.`]),
    ...(isServiceAsked ? [] : ["The service did not answer, so its clock was assumed to equal this machine's."]),
    "",
    "Before anything is started:",
    `  ${tallyhook("users list")}           accounts and roles are those of the backup: disable who left since`,
    `  ${tallyhook("secrets list")}         so are signing secrets: add and retire what was rotated since`,
    `  ${tallyhook("close verify")}         closed months keep their seals; close later ones again`,
    `  ${tallyhook("roles --sql")}          privileges are not restored: run it, if you use database roles`,
    "Then start receiver and worker, and:",
    `  ${tallyhook("reconcile --full")}     reads what the database lacks from the service`,
    "docs/backup.md has the rest.",
  ];
  return `${lines.join("\n")}\n`;
}
