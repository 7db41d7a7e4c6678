import type { Command } from "commander";
import type { Knex } from "knex";
import { tallyhook } from "../../../platform/command-line.ts";
import { noRecipient, pausing, removing, requireRemains, resuming, retrying, skipping } from "../dispatch/acts.ts";
import { type HandlerRemains, handlerNames, mostCounted, readHandlers } from "../dispatch/manage-handlers.ts";
import { readOpenRuns } from "../dispatch/open-runs.ts";
import { type Change, readChanges } from "../../../core/mirror/changes/read-changes.ts";
import { ConfigurationError, UsageError } from "../../../platform/errors.ts";
import { nearestName } from "../../../platform/nearest-name.ts";
import { counted, someOf, withoutControls } from "../../../platform/readable-text.ts";
import { registerAct } from "../../../app/cli/act-command.ts";
import { type Opened, howMany, registerReading, withDatabase } from "../../../app/cli/command.ts";
import { reference } from "../../../app/people/fields.ts";
import type { CliContext } from "../../../app/cli/context.ts";
import { type TableWords, countText, recipientList, recipientPage } from "./recipient-tables.ts";

/** The words of the commands for recipients of one kind. */
export interface RecipientWords extends TableWords {
  /** For example "handler". */
  noun: string;
  /** The option for the number of an item: "--change". */
  numberOption: string;
  /** The loss when one is removed: "its place in the feed". */
  place: string;
  /** The process that starts a new one: "a worker". */
  starter: string;
  /** Follow `remove` while it runs, and where it is still defined. */
  howToStop: string;
  stillDefined: string;
  /** The JSON key for whether it is defined. */
  definedKey: string;
  /** Shown where there are none. */
  none: string;
}

export interface RecipientKind {
  words: RecipientWords;
  /** Converts to the dispatch's name and back; undefined and null for another kind. */
  recipientOf(name: string): string | undefined;
  nameOf(recipient: string): string | null;
  /**
   * The recipients that a worker with these settings would run. Throws `ConfigurationError` where they cannot be read.
   */
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

/** Registers `list`, `show`, `retry`, `skip`, `pause`, `resume` and `remove`. */
export function registerRecipientCommands(program: Command, context: CliContext, kind: RecipientKind): void {
  const { noun, items } = kind.words;
  const deps = { context, kind };

  program
    .command("list")
    .description(`list the ${noun}s, how far they are, and what waits`)
    .option("--json", "print JSON")
    .action(({ json }: { json?: boolean }) => list(deps, json === true));

  const shown = program.command("show").description(`show one ${noun}, and the ${items} that it has not done`);
  registerReading(shown, context, {
    takes: {
      name: { is: reference, flags: "<name>", says: "its name" },
      limit: { ...howMany(50), says: `how many ${items}` },
    },
    async read({ db }, { name, limit }) {
      const recipient = await findKnown(deps, db, name);
      const [row] = await readHandlers(db, recipient);
      if (row === undefined) throw noRecipient(recipient);
      return { row: { ...row, name }, runs: await readOpenRuns(db, { handler: recipient, limit: limit + 1 }) };
    },
    text: ({ row, runs }, { limit }) => recipientPage(kind.words, row, runs.slice(0, limit)),
    json: ({ row, runs }, { limit }) => ({ ...row, [items]: runs.slice(0, limit) }),
    note: ({ runs }, { limit }) => (runs.length > limit ? `these are the first ${limit}: add --limit for more` : null),
  });

  registerRecipientActs(program, context, kind);
}

/** Registers `retry`, `skip`, `pause`, `resume` and `remove`. */
function registerRecipientActs(program: Command, context: CliContext, kind: RecipientKind): void {
  const { command, noun, item, items, numberOption, place, howToStop } = kind.words;
  const name = {
    flags: "<name>",
    says: `the ${noun}'s name`,
    means: (typed: string) => kind.recipientOf(typed),
  };
  const shown = ({ recipient }: { recipient: string }) => shownName(kind, recipient);
  const common = {
    by: { who: "script", says: "name of the person who does this, for the audit" },
    deps: ({ db }: Opened) => ({ db }),
    hints: {
      unknown: async ({ db }: { db: Knex }, { recipient }: { recipient: string }) =>
        whereToLook(kind, db, kind.nameOf(recipient) ?? recipient),
      invalid: `Give ${numberOption}, or --all.`,
    },
  } as const;

  registerAct(program, context, {
    ...common,
    act: retrying,
    name: "retry",
    description: `retry dead ${items}, with all their attempts`,
    takes: {
      recipient: name,
      seq: { flags: `${numberOption} <seq>`, says: `this ${item} only` },
      all: { flags: "--all", says: `every dead ${item} of this ${noun}` },
    },
    say({ runs, isPaused }, { input }) {
      const of = shown(input);
      const when = isPaused ? `once it is not paused: "${tallyhook(`${command} resume ${of}`)}".` : "immediately.";
      return runs === 0
        ? `${of} has no dead ${item}.\n`
        : `${counted(runs, item, items)} of ${of} will be tried again ${when}\n`;
    },
  });

  registerAct(program, context, {
    ...common,
    act: skipping,
    name: "skip",
    description: `give up a ${item}, so that later ${items} of its object go on`,
    takes: {
      recipient: name,
      seq: { flags: `${numberOption} <seq>`, says: `the number of the ${item}` },
    },
    say: (_, { input }) =>
      `${shown(input)} never sees ${item} ${input.seq}. Later ones of its object do not wait for it.\n`,
  });

  registerAct(program, context, {
    ...common,
    act: pausing,
    name: "pause",
    description: "start nothing more until it is resumed; nothing is lost",
    takes: {
      recipient: name,
      reason: {
        flags: "--reason <text>",
        says: "the reason, which the list shows",
        default: "a person paused it",
      },
    },
    say: (_, { input }) => `${shown(input)} is paused. "${tallyhook(`${command} resume ${shown(input)}`)}" ends it.\n`,
  });

  registerAct(program, context, {
    ...common,
    act: resuming,
    name: "resume",
    description: "end a pause, and retry immediately what has failed",
    takes: { recipient: name },
    say: (_, { input }) => `${shown(input)} is not paused.\n`,
  });

  registerAct(program, context, {
    ...common,
    act: removing,
    name: "remove",
    description: `forget a ${noun} that is no longer needed: ${place}, and what waits for it`,
    takes: { recipient: name },
    hints: { ...common.hints, hindered: `${howToStop}; then remove it.` },
    async ask({ db }, { recipient }) {
      const remains = await requireRemains(db, recipient);
      context.stderr.write(`tallyhook: ${await whatIsLost(kind, recipient, remains)}\n`);
      return { question: `Remove ${shownName(kind, recipient)}?`, decidedOn: null };
    },
    say: (_, { input }) => `The ${noun} ${shown(input)} is removed.\n`,
  });
}

const shownName = (kind: RecipientKind, recipient: string): string =>
  withoutControls(kind.nameOf(recipient) ?? recipient);

async function whatIsLost(kind: RecipientKind, recipient: string, { waiting, dead }: HandlerRemains): Promise<string> {
  const { item, items, place, stillDefined } = kind.words;
  const open = waiting + dead;
  const lost =
    open === 0
      ? "Nothing waits for it."
      : `${counted(open < mostCounted ? open : `${mostCounted} or more`, item, items)} that it has not done ` +
        `(${countText(dead)} dead) ${open === 1 ? "is" : "are"} thrown away.`;
  const isDefined = (await definedNames(kind)).includes(kind.nameOf(recipient) ?? recipient);
  const again = isDefined ? ` ${stillDefined}: it starts over at the next start.` : "";
  return `${capitalized(place)} is lost. ${lost}${again}`;
}

async function list(deps: Deps, json: boolean): Promise<void> {
  const { kind, context } = deps;
  const { noun, definedKey, none } = kind.words;
  // The database's data is useful even where a definition is broken.
  const { names, problem } = await kind.defined().catch((error: unknown) => {
    if (error instanceof ConfigurationError) return { names: [] as string[], problem: error.message };
    throw error;
  });
  // One without a definition may be that of a broken one.
  const isDefined = (name: string) => names.includes(name) || (problem === null ? false : null);
  const ran = await withDatabase(context, kind.words.command, ({ db }) => readHandlers(db));
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

/** The recipient of that name. Throws `UsageError` for one that has not run on this database. */
async function findKnown({ kind }: Deps, db: Knex, name: string): Promise<string> {
  const recipient = kind.recipientOf(name) ?? name;
  const isKnown = (await handlerNames(db)).some((row) => kind.nameOf(row.name) === name);
  if (isKnown) return recipient;
  throw new UsageError(`${noRecipient(recipient).message} ${await whereToLook(kind, db, name)}`);
}

/** Advice for an unknown name or number. */
async function whereToLook(kind: RecipientKind, db: Knex, name: string): Promise<string> {
  const { command, starter } = kind.words;
  const known = (await handlerNames(db)).flatMap((row) => kind.nameOf(row.name) ?? []);
  if (known.includes(name)) {
    return `"${tallyhook(`${command} show ${name}`)}" lists those that are not done.`;
  }
  if ((await definedNames(kind)).includes(name)) {
    return `${capitalized(starter)} begins it at its next start.`;
  }
  const nearest = nearestName(name, known);
  return nearest === null ? `"${tallyhook(`${command} list`)}" shows those that have.` : `Did you mean "${nearest}"?`;
}

/** The names of those that are defined here, as far as their definitions can be read. */
const definedNames = (kind: RecipientKind): Promise<readonly string[]> =>
  kind.defined().then(
    ({ names }) => names,
    () => [],
  );

const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** The message for a name that is not defined here. */
export function namesNear(name: string, known: readonly string[]): string {
  const nearest = nearestName(name, known);
  return nearest === null ? `There is ${someOf(known, 10)}.` : `Did you mean "${nearest}"?`;
}

/** The change with that number, for a test. Throws `UsageError` where the feed lacks it. */
export async function readOneChange(db: Knex, seq: number): Promise<Change> {
  const [change] = (await readChanges(db, { after: seq - 1, limit: 1 })).changes;
  if (change?.seq === seq) return change;
  throw new UsageError(`The feed has no change ${seq}. The table feed.changes has all that were not removed yet.`);
}
