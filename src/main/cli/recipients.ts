import { type Command, Option } from "commander";
import type { Knex } from "knex";
import {
  type HandlerRow,
  handlerNames,
  lockHandler,
  mostCounted,
  pauseHandler,
  readHandlers,
  readRemains,
  readRun,
  removeHandler,
  resumeHandler,
  retryRuns,
  skipRun,
} from "../../dispatch/manage-handlers.ts";
import { lockRun, readOpenRuns } from "../../dispatch/open-runs.ts";
import { type Change, readChanges } from "../../feed/changes.ts";
import { type Actor, type RecordedAct, recordAct } from "../../people/audit.ts";
import { ConfigurationError, UsageError } from "../../platform/errors.ts";
import { shortLine } from "../../platform/free-text.ts";
import { nearestName } from "../../platform/nearest-name.ts";
import { inTransaction } from "../../platform/postgres/transactions.ts";
import { counted, someOf, withoutControls } from "../../platform/readable-text.ts";
import type { Runtime } from "../runtime.ts";
import { migratedDatabase } from "../schema.ts";
import { parsePerson, scriptActor } from "./acting-person.ts";
import { freeText, wholeNumber } from "./arguments.ts";
import { assertCanAsk, confirm } from "./confirm.ts";
import type { CliContext } from "./context.ts";
import { type TableWords, countText, recipientList, recipientPage } from "./recipient-tables.ts";

/** What commands say of recipients of one kind. */
export interface RecipientWords extends TableWords {
  /** Such as "handler". */
  noun: string;
  /** The option for the number of what it is given: "--change". */
  numberOption: string;
  /** What is lost with one that is removed: "its place in the feed". */
  place: string;
  /** Who begins a new one: "a worker". */
  starter: string;
  /** Follow `remove` while it runs, and where it is still defined. */
  howToStop: string;
  stillDefined: string;
  /** The key in JSON that says whether it is defined. */
  definedKey: string;
  /** Said where there are none. */
  none: string;
}

/** One kind of recipient of the dispatch. */
export interface RecipientKind {
  words: RecipientWords;
  /** Under which the dispatch would know it, and back; null for one of another kind. */
  recipientOf(name: string): string;
  nameOf(recipient: string): string | null;
  /** Those that a worker with these settings would run. Throws `ConfigurationError` where nothing can be read. */
  defined(): Promise<Defined>;
}

export interface Defined {
  names: readonly string[];
  /** For people: the faults of files whose handlers are unknown. */
  problem: string | null;
}

interface Deps {
  context: CliContext;
  kind: RecipientKind;
}

/** The number of a change or an event. */
export const itemNumber = wholeNumber(1, 999_999_999_999_999);

/** Registers `list`, `show`, `retry`, `skip`, `pause`, `resume` and `remove`. */
export function registerRecipientCommands(
  program: Command,
  context: CliContext,
  kind: RecipientKind,
): void {
  const { noun, item, items, numberOption, place } = kind.words;
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
    .addOption(actingOption())
    .action(
      (name: string, { all, by, ...options }: NumberOption & ActingOption & { all?: boolean }) =>
        retry(deps, name, { seq: numberIn(kind, options), all: all === true, by }),
    );

  program
    .command("skip")
    .description(`give up a ${item}, so that later ${items} of its object go on`)
    .argument("<name>", `the ${noun}'s name`)
    .requiredOption(`${numberOption} <seq>`, `the number of the ${item}`, itemNumber)
    .addOption(actingOption())
    // The option is required.
    .action((name: string, { by, ...options }: NumberOption & ActingOption) =>
      skip(deps, name, { seq: numberIn(kind, options) ?? 0, by }),
    );

  program
    .command("pause")
    .description("begin nothing more until it is resumed; nothing is lost meanwhile")
    .argument("<name>", `the ${noun}'s name`)
    .option(
      "--reason <text>",
      "why, for those who see the list",
      freeText(shortLine),
      "a person paused it",
    )
    .addOption(actingOption())
    .action((name: string, options: ActingOption & { reason: string }) =>
      pause(deps, name, options),
    );

  program
    .command("resume")
    .description("end a pause, and try at once what has failed")
    .argument("<name>", `the ${noun}'s name`)
    .addOption(actingOption())
    .action((name: string, { by }: ActingOption) => resume(deps, name, by));

  program
    .command("remove")
    .description(`forget a ${noun} that nobody needs: ${place}, and what waits for it`)
    .argument("<name>", `the ${noun}'s name`)
    .option("--yes", "remove it without asking")
    .addOption(actingOption())
    .action((name: string, options: ActingOption & { yes?: boolean }) =>
      remove(deps, name, options),
    );
}

type NumberOption = Record<string, number | undefined>;

interface ActingOption {
  by?: string | undefined;
}

const actingOption = (): Option =>
  new Option("--by <name>", "who does it, for the record").argParser(parsePerson);

/** What somebody does to a recipient, with its record; what returns null did nothing. */
const acting = <T>(
  db: Knex,
  actor: Actor,
  recipient: string,
  work: (trx: Knex.Transaction) => Promise<{ act: Omit<RecordedAct, "subject"> | null; result: T }>,
): Promise<T> =>
  inTransaction(db, async (trx) => {
    const { act, result } = await work(trx);
    if (act !== null) {
      await recordAct(trx, actor, { ...act, subject: { kind: "handler", id: recipient } });
    }
    return result;
  });

const numberIn = (
  { words }: Pick<RecipientKind, "words">,
  options: NumberOption,
): number | undefined => options[words.numberOption.slice("--".length)];

/** Runs work on the migrated database, for commands that print. */
export const withDatabase = <T>(
  context: CliContext,
  command: string,
  work: (db: Knex, runtime: Runtime) => Promise<T>,
): Promise<T> =>
  context.withRuntime(command, async (runtime) => work(await migratedDatabase(runtime), runtime), {
    logLevel: "warn",
  });

const withRecipients = <T>({ context, kind }: Deps, work: (db: Knex) => Promise<T>): Promise<T> =>
  withDatabase(context, kind.words.command, work);

async function list(deps: Deps, json: boolean): Promise<void> {
  const { kind, context } = deps;
  const { noun, definedKey, none } = kind.words;
  // What the database says is of use also where a definition is broken.
  const { names, problem } = await kind.defined().catch((error: unknown) => {
    if (error instanceof ConfigurationError)
      return { names: [] as string[], problem: error.message };
    throw error;
  });
  // One without a definition may be that of a broken one.
  const isDefined = (name: string) => names.includes(name) || (problem === null ? false : null);
  const ran = await withRecipients(deps, (db) => readHandlers(db));
  const rows = ran.flatMap((row) => {
    const name = kind.nameOf(row.name);
    return name === null ? [] : [{ ...row, name, isDefined: isDefined(name) }];
  });
  const neverRan = names.filter((name) => !rows.some((row) => row.name === name));
  if (json) {
    const shown = rows.map(({ isDefined, ...row }) => ({ ...row, [definedKey]: isDefined }));
    context.stdout.write(`${JSON.stringify({ [`${noun}s`]: shown, never_run: neverRan })}\n`);
  } else if (rows.length > 0 || neverRan.length > 0) {
    context.stdout.write(recipientList(kind.words, rows, neverRan));
  } else if (problem === null) {
    context.stdout.write(`${none}\n`);
  }
  if (problem !== null) throw new ConfigurationError(problem);
}

async function show(
  deps: Deps,
  name: string,
  { limit, json }: { limit: number; json?: boolean },
): Promise<void> {
  const { context, kind } = deps;
  const { found, runs } = await withRecipients(deps, async (db) => {
    const { recipient } = await findKnown(deps, db, name);
    const [row] = await readHandlers(db, recipient);
    return { found: row, runs: await readOpenRuns(db, { handler: recipient, limit: limit + 1 }) };
  });
  if (found === undefined) return;
  const row = { ...found, name };
  const shown = runs.slice(0, limit);
  if (json === true) {
    context.stdout.write(`${JSON.stringify({ ...row, [kind.words.items]: shown })}\n`);
    return;
  }
  context.stdout.write(recipientPage(kind.words, row, shown));
  if (runs.length > limit) {
    context.stderr.write(`tallyhook: these are the first ${limit}: add --limit for more\n`);
  }
}

async function retry(
  deps: Deps,
  name: string,
  { seq, all, by }: ActingOption & { seq: number | undefined; all: boolean },
): Promise<void> {
  const { context, kind } = deps;
  const actor = scriptActor(context, by);
  const { command, item, items, numberOption } = kind.words;
  if ((seq === undefined) !== all) {
    throw new UsageError(`Name one ${item} by ${numberOption}, or add --all for every dead one.`);
  }
  const { pausedBy, again } = await withRecipients(deps, async (db) => {
    const known = await findKnown(deps, db, name);
    const which = seq === undefined ? ({ state: "dead" } as const) : { seq };
    const count = await acting(db, actor, known.recipient, async (trx) => {
      const runs = await retryRuns(trx, known.recipient, which);
      const act = { action: "handler.retried", after: { ...(all ? {} : { seq }), runs } };
      return { act: runs === 0 ? null : act, result: runs };
    });
    if (count === 0 && seq !== undefined) throw await whyNot(deps, db, name, seq);
    return { ...known, again: count };
  });
  if (again === 0) {
    context.stdout.write(`${name} has no dead ${item}.\n`);
    return;
  }
  const when =
    pausedBy === null
      ? "at once."
      : `once it is not paused: "node src/bin/tallyhook.js ${command} resume ${name}".`;
  context.stdout.write(`${counted(again, item, items)} of ${name} will be tried again ${when}\n`);
}

async function skip(
  deps: Deps,
  name: string,
  { seq, by }: ActingOption & { seq: number },
): Promise<void> {
  const actor = scriptActor(deps.context, by);
  await withRecipients(deps, async (db) => {
    const { recipient } = await findKnown(deps, db, name);
    const isSkipped = await acting(db, actor, recipient, async (trx) => {
      const run = await lockRun(trx, recipient, seq);
      const result = await skipRun(trx, recipient, seq);
      if (!result || run === null) return { act: null, result };
      const { kind, resource, id, state, attempts } = run;
      const before = { seq, kind, resource, id, state, attempts };
      return { act: { action: "handler.skipped", before }, result };
    });
    if (!isSkipped) throw await whyNot(deps, db, name, seq);
  });
  deps.context.stdout.write(
    `${name} never sees ${deps.kind.words.item} ${seq}. Later ones of its object do not wait for it.\n`,
  );
}

async function pause(
  deps: Deps,
  name: string,
  { reason, by }: ActingOption & { reason: string },
): Promise<void> {
  const actor = scriptActor(deps.context, by);
  await withRecipients(deps, async (db) => {
    const { recipient } = await findKnown(deps, db, name);
    await acting(db, actor, recipient, async (trx) => {
      const before = { pausedBy: (await lockHandler(trx, recipient))?.paused_by ?? null };
      const result = await pauseHandler(trx, recipient, reason);
      return { act: { action: "handler.paused", before, after: { pausedBy: "person" } }, result };
    });
  });
  deps.context.stdout.write(
    `${name} is paused. "node src/bin/tallyhook.js ${deps.kind.words.command} resume ${name}" ends it.\n`,
  );
}

async function resume(deps: Deps, name: string, by: string | undefined): Promise<void> {
  const actor = scriptActor(deps.context, by);
  await withRecipients(deps, async (db) => {
    const { recipient } = await findKnown(deps, db, name);
    await acting(db, actor, recipient, async (trx) => {
      const before = { pausedBy: (await lockHandler(trx, recipient))?.paused_by ?? null };
      const result = await resumeHandler(trx, recipient);
      return { act: { action: "handler.resumed", before, after: { pausedBy: null } }, result };
    });
  });
  deps.context.stdout.write(`${name} is not paused.\n`);
}

async function remove(
  deps: Deps,
  name: string,
  { yes = false, by }: ActingOption & { yes?: boolean },
): Promise<void> {
  const { context, kind } = deps;
  const actor = scriptActor(context, by);
  const { noun, item, items, place, howToStop, stillDefined } = kind.words;
  if (!yes) assertCanAsk(context);
  const shown = withoutControls(name);
  const recipient = kind.recipientOf(name);
  await withRecipients(deps, async (db) => {
    const remains = kind.nameOf(recipient) === null ? null : await readRemains(db, recipient);
    if (remains === null) throw await unknown(deps, db, name);
    const { waiting, dead, runningUntil } = remains;
    if (runningUntil !== null) {
      throw new UsageError(
        `A process runs ${shown} just now, until ${runningUntil.toISOString()} at most. ${howToStop}; then remove it.`,
      );
    }
    const again = (await definedNames(kind)).includes(name)
      ? ` ${stillDefined}: it starts over at the next start.`
      : "";
    const open = waiting + dead;
    const lost =
      open === 0
        ? "Nothing waits for it."
        : `${counted(open < mostCounted ? open : `${mostCounted} or more`, item, items)} that it has not done ` +
          `(${countText(dead)} dead) ${open === 1 ? "is" : "are"} thrown away.`;
    const says = `${capitalized(place)} is lost. ${lost}${again}`;
    if (yes) context.stderr.write(`tallyhook: ${says}\n`);
    else await confirm(context, `${says} Remove ${shown}?`);
    await acting(db, actor, recipient, async (trx) => {
      await removeHandler(trx, recipient);
      return { act: { action: "handler.removed", before: { waiting, dead } }, result: null };
    });
  });
  context.stdout.write(`The ${noun} ${shown} is removed.\n`);
}

interface KnownRecipient {
  recipient: string;
  pausedBy: HandlerRow["paused_by"];
}

/** Throws `UsageError` for one that has not run on this database. */
async function findKnown(deps: Deps, db: Knex, name: string): Promise<KnownRecipient> {
  const found = (await handlerNames(db)).find((row) => deps.kind.nameOf(row.name) === name);
  if (found === undefined) throw await unknown(deps, db, name);
  return { recipient: found.name, pausedBy: found.paused_by };
}

async function unknown({ kind }: Deps, db: Knex, name: string): Promise<UsageError> {
  const { command, noun, starter } = kind.words;
  const shown = withoutControls(name);
  if ((await definedNames(kind)).includes(name)) {
    return new UsageError(
      `No process has run "${shown}" on this database yet: ${starter} begins it at its next start.`,
    );
  }
  const known = (await handlerNames(db)).flatMap((row) => kind.nameOf(row.name) ?? []);
  if (known.length === 0) return new UsageError(`No ${noun} has run on this database yet.`);
  const nearest = nearestName(name, known);
  return new UsageError(
    `No ${noun} "${shown}" has run on this database. ` +
      (nearest === null
        ? `"node src/bin/tallyhook.js ${command} list" shows those that have.`
        : `Did you mean "${withoutControls(nearest)}"?`),
  );
}

/** The names of those that are defined here, as far as their definitions can be read. */
const definedNames = (kind: RecipientKind): Promise<readonly string[]> =>
  kind.defined().then(
    ({ names }) => names,
    () => [],
  );

async function whyNot({ kind }: Deps, db: Knex, name: string, seq: number): Promise<UsageError> {
  const { command, item } = kind.words;
  const run = await readRun(db, kind.recipientOf(name), seq);
  if (run === null) {
    return new UsageError(
      `${name} has nothing to do with ${item} ${seq}: it has done or skipped it, or never wanted it. "node ` +
        `src/bin/tallyhook.js ` +
        `${command} show ${name}" lists those that are not done.`,
    );
  }
  return new UsageError(
    run.waitsFor === null
      ? `${name} runs ${item} ${seq} just now. Try again once that has ended.`
      : `${capitalized(item)} ${seq} waits behind ${item} ${run.waitsFor} of the same object. ` +
          "Retry or skip that one first.",
  );
}

const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** What is said of a name that is not among those that are defined here. Pure. */
export function namesNear(name: string, known: readonly string[]): string {
  const nearest = nearestName(name, known);
  return nearest === null ? `There is ${someOf(known, 10)}.` : `Did you mean "${nearest}"?`;
}

/** The change of that number, for a test. Throws `UsageError` where the feed has none. */
export async function readOneChange(db: Knex, seq: number): Promise<Change> {
  const [change] = (await readChanges(db, { after: seq - 1, limit: 1 })).changes;
  if (change?.seq === seq) return change;
  throw new UsageError(
    `The feed has no change ${seq}. The table feed.changes has all that were not removed yet.`,
  );
}
