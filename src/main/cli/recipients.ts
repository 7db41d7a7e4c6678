import Table from "cli-table3";
import type { Command } from "commander";
import type { Knex } from "knex";
import {
  type HandlerRow,
  type OpenRunRow,
  pauseHandler,
  readHandlers,
  readOpenRuns,
  resumeHandler,
  retryRuns,
  skipRun,
} from "../../dispatch/manage-handlers.ts";
import { UsageError } from "../../platform/errors.ts";
import { counted, linesWithoutControls, withoutControls } from "../../platform/readable-text.ts";
import type { Runtime } from "../runtime.ts";
import { migratedDatabase } from "../schema.ts";
import { wholeNumber } from "./arguments.ts";
import type { CliContext } from "./context.ts";

/** The words of one kind of recipient of the dispatch. */
export interface RecipientKind {
  /** The first word of its commands. */
  command: string;
  /** Such as "handler". */
  noun: string;
  /** What it is given: "change", "changes". */
  item: string;
  items: string;
  /** The command line's option for the number of one: "--change". */
  numberOption: string;
  /** Under which the dispatch knows it, and back; null for one of another kind. */
  recipientOf(name: string): string;
  nameOf(recipient: string): string | null;
  /** The names of those that a worker with these settings would run. */
  defined(): Promise<readonly string[]>;
  /** What the list says of one that is not defined here. */
  undefinedState: string;
  /** The key in JSON that says whether it is defined. */
  definedKey: string;
  /** Said where there are none. */
  none: string;
}

interface Deps {
  context: CliContext;
  kind: RecipientKind;
}

const itemNumber = wholeNumber(1, 999_999_999_999_999);

/** Registers `list`, `show`, `retry`, `skip`, `pause` and `resume`. */
export function registerRecipientCommands(
  program: Command,
  context: CliContext,
  kind: RecipientKind,
): void {
  const { noun, item, items, numberOption } = kind;
  const deps = { context, kind };

  program
    .command("list")
    .description(`list the ${noun}s, how far they are, and what waits`)
    .option("--json", "print JSON")
    .action(({ json }: { json?: boolean }) => list(deps, json === true));

  program
    .command("show")
    .description(`show one ${noun}, and the ${items} that it has not done`)
    .argument("<name>", "its name")
    .option("--limit <n>", `how many ${items}`, wholeNumber(1, 10_000), 50)
    .option("--json", "print JSON")
    .action((name: string, options: { limit: number; json?: boolean }) =>
      show(deps, name, options),
    );

  program
    .command("retry")
    .description(`try dead ${items} again at once, with all their attempts`)
    .argument("<name>", `the ${noun}'s name`)
    .option(`${numberOption} <seq>`, `this ${item} only`, itemNumber)
    .option("--all", `every dead ${item} of this ${noun}`)
    .action((name: string, options: NumberOption & { all?: boolean }) =>
      retry(deps, name, options),
    );

  program
    .command("skip")
    .description(`give up a ${item}, so that later ${items} of its object go on`)
    .argument("<name>", `the ${noun}'s name`)
    .requiredOption(`${numberOption} <seq>`, `the number of the ${item}`, itemNumber)
    .action((name: string, options: NumberOption) => skip(deps, name, numberIn(kind, options)));

  program
    .command("pause")
    .description("begin nothing more until it is resumed; nothing is lost meanwhile")
    .argument("<name>", `the ${noun}'s name`)
    .option("--reason <text>", "why, for those who see the list", "a person paused it")
    .action((name: string, { reason }: { reason: string }) => pause(deps, name, reason));

  program
    .command("resume")
    .description("end a pause, and try at once what has failed")
    .argument("<name>", `the ${noun}'s name`)
    .action((name: string) => resume(deps, name));
}

type NumberOption = Record<string, number | undefined>;

/** The option was required. */
const numberIn = ({ numberOption }: RecipientKind, options: NumberOption): number =>
  options[numberOption.slice(2)] ?? 0;

/** Runs work on the migrated database, for commands that print. */
export const withDatabase = <T>(
  context: CliContext,
  command: string,
  work: (db: Knex, runtime: Runtime) => Promise<T>,
): Promise<T> =>
  context.withRuntime(command, async (runtime) => work(await migratedDatabase(runtime), runtime), {
    logLevel: "warn",
  });

async function list({ context, kind }: Deps, json: boolean): Promise<void> {
  const defined = new Set(await kind.defined());
  const known = await withDatabase(context, kind.command, (db) => readHandlers(db));
  const rows = known.flatMap((row) => {
    const name = kind.nameOf(row.name);
    return name === null ? [] : [{ ...row, name, isDefined: defined.has(name) }];
  });
  const fresh = [...defined].filter((name) => !rows.some((row) => row.name === name));
  if (json) {
    const shown = rows.map(({ isDefined, ...row }) => ({ ...row, [kind.definedKey]: isDefined }));
    context.stdout.write(`${JSON.stringify({ [`${kind.noun}s`]: shown, never_run: fresh })}\n`);
    return;
  }
  if (rows.length === 0 && fresh.length === 0) {
    context.stdout.write(`${kind.none}\n`);
    return;
  }
  const table = new Table({
    head: ["name", "state", "waiting", "dead", "done", "failed", "behind", "last done"],
    style: { head: [], border: [] },
  });
  for (const row of rows) {
    const { name, waiting, dead, done, failed, behind, last_done_at: last } = row;
    const numbers = [waiting, dead, done, failed, behind].map(String);
    table.push([name, stateOf(kind, row), ...numbers, last?.toISOString() ?? "-"]);
  }
  for (const name of fresh) table.push([name, "never ran", "-", "-", "-", "-", "-", "-"]);
  context.stdout.write(`${table.toString()}\n`);
  for (const { name, dead } of rows.filter((row) => row.dead > 0)) {
    const many = counted(dead, `dead ${kind.item} holds`, `dead ${kind.items} hold`);
    context.stdout.write(
      `${name}: ${many} up the later ones of the same object. ` +
        `"npx tallyhook ${kind.command} show ${name}" lists them; "retry" or "skip" frees them.\n`,
    );
  }
  for (const { name, pause_reason: reason } of rows.filter((row) => row.paused_by !== null)) {
    context.stdout.write(`${name} is paused: ${linesWithoutControls(reason ?? "")}\n`);
  }
}

const pausedStates = {
  person: "paused",
  failures: "paused: all fail",
  subscriber: "paused: refused",
} as const;

const stateOf = (kind: RecipientKind, row: HandlerRow & { isDefined: boolean }): string => {
  if (row.paused_by !== null) return pausedStates[row.paused_by];
  return row.isDefined ? "on" : kind.undefinedState;
};

async function show(
  { context, kind }: Deps,
  name: string,
  { limit, json }: { limit: number; json?: boolean },
): Promise<void> {
  const { found, runs } = await withDatabase(context, kind.command, async (db) => {
    const handler = kind.recipientOf(name);
    const [row] = await readHandlers(db, handler);
    return { found: row, runs: await readOpenRuns(db, { handler, limit }) };
  });
  if (found === undefined) throw unknownName(kind, name);
  const row = { ...found, name };
  if (json === true) {
    context.stdout.write(`${JSON.stringify({ ...row, [kind.items]: runs })}\n`);
    return;
  }
  for (const [field, value] of Object.entries(row)) {
    const text = value instanceof Date ? value.toISOString() : String(value ?? "-");
    context.stdout.write(`${field.padEnd(16)} ${withoutControls(text)}\n`);
  }
  if (runs.length === 0) return;
  const table = new Table({
    head: [kind.item, "kind", "object", "state", "attempts", "error", "next", "holds up"],
    style: { head: [], border: [] },
  });
  for (const each of runs) table.push(runRow(each));
  context.stdout.write(`${table.toString()}\n`);
}

const runRow = (run: OpenRunRow): string[] => [
  String(run.seq),
  withoutControls(run.kind),
  withoutControls(run.id),
  run.is_running ? "running" : run.state,
  String(run.attempts),
  withoutControls(run.error ?? "-"),
  run.due_at?.toISOString() ?? "-",
  String(run.holds_up),
];

async function retry(
  { context, kind }: Deps,
  name: string,
  { all, ...options }: NumberOption & { all?: boolean },
): Promise<void> {
  const seq = options[kind.numberOption.slice(2)];
  if ((seq === undefined) === (all !== true)) {
    throw new UsageError(
      `Name one ${kind.item} by ${kind.numberOption}, or add --all for every dead one.`,
    );
  }
  const again = await withDatabase(context, kind.command, async (db) => {
    const handler = await assertKnown(db, kind, name);
    return retryRuns(db, handler, seq === undefined ? { state: "dead" } : { seq });
  });
  if (again === 0 && seq !== undefined) throw noRun(kind, name, seq);
  context.stdout.write(
    `${counted(again, kind.item, kind.items)} of ${name} will be tried again at once.\n`,
  );
}

async function skip({ context, kind }: Deps, name: string, seq: number): Promise<void> {
  const isSkipped = await withDatabase(context, kind.command, async (db) =>
    skipRun(db, await assertKnown(db, kind, name), seq),
  );
  if (!isSkipped) throw noRun(kind, name, seq);
  context.stdout.write(`${name} never sees ${kind.item} ${seq}. Later ones of its object go on.\n`);
}

async function pause({ context, kind }: Deps, name: string, reason: string): Promise<void> {
  const isKnown = await withDatabase(context, kind.command, (db) =>
    pauseHandler(db, kind.recipientOf(name), reason),
  );
  if (!isKnown) throw unknownName(kind, name);
  context.stdout.write(
    `${name} is paused. "npx tallyhook ${kind.command} resume ${name}" ends it.\n`,
  );
}

async function resume({ context, kind }: Deps, name: string): Promise<void> {
  const isKnown = await withDatabase(context, kind.command, (db) =>
    resumeHandler(db, kind.recipientOf(name)),
  );
  if (!isKnown) throw unknownName(kind, name);
  context.stdout.write(`${name} is not paused.\n`);
}

/** Returns the name under which the dispatch knows it. */
async function assertKnown(db: Knex, kind: RecipientKind, name: string): Promise<string> {
  const recipient = kind.recipientOf(name);
  if ((await readHandlers(db, recipient)).length === 0) throw unknownName(kind, name);
  return recipient;
}

const unknownName = ({ noun, command }: RecipientKind, name: string): UsageError =>
  new UsageError(
    `No ${noun} "${name}" has run on this database. "npx tallyhook ${command} list" shows those that have.`,
  );

const noRun = ({ command, item }: RecipientKind, name: string, seq: number): UsageError =>
  new UsageError(
    `${name} has no ${item} ${seq} whose turn it is, or runs it just now. "npx tallyhook ${command} show ${name}" ` +
      "lists those that are not done.",
  );
