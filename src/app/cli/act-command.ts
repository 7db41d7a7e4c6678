import type { Command } from "commander";
import { ActRefused, type AnyAct, type CommandAct, type Refusal } from "../people/act.ts";
import type { Actor } from "../people/audit.ts";
import { UsageError } from "../../platform/errors.ts";
import { commandActor, parsePerson, scriptActor } from "./acting-person.ts";
import { type Opened, type Taken, print, takeOptions, withDatabase } from "./command.ts";
import { assertCanAsk, confirm } from "./confirm.ts";
import type { CliContext } from "./context.ts";

/** Appended to the message of a refusal. */
type Hint<Deps, Input> = string | ((deps: Deps, input: Input) => Promise<string>);

/** The door of an act on the command line. */
export interface ActCommand<Deps, Input, Done> {
  act: CommandAct<Deps, Input, Done>;
  name: string;
  /** Absent for a command that its part lists. */
  description?: string;
  /** Fields in the order of help. A field without flags takes its default where nothing was typed. */
  takes: { readonly [Name in keyof Input]?: Taken };
  /** `person`: asks for a name where the system knows none; `script`: records the system's user then. */
  by: { who: "person" | "script"; says: string };
  /** Made first. `options`: those of the command in addition to the act's fields. */
  deps(opened: Opened, options: Readonly<Record<string, unknown>>): Deps | Promise<Deps>;
  /** Asked on a terminal unless `--yes` is given, with the state that it is about. May refuse. */
  ask?(deps: Deps, input: Input): Promise<{ question: string; decidedOn: string | null }>;
  /** The text to print. */
  say(done: Done, told: { input: Input; actor: Actor; deps: Deps }): string;
  /** The value that `--json` prints; absent: there is no such option. */
  json?(done: Done): unknown;
  hints?: Partial<Record<Refusal, Hint<Deps, Input>>>;
}

const doors = new WeakMap<Command, { act: Omit<AnyAct, "permission">; takes: Readonly<Record<string, Taken>> }>();

/** The act that a command is a door of, and how it takes the act's fields; undefined for other commands. */
export const doorOf = (command: Command) => doors.get(command);

/**
 * Makes a command a door of an act, and gives it the act's fields. What it returns reads their values when the command
 * runs.
 */
export function takeAct<Input>(
  command: Command,
  act: CommandAct<never, Input, unknown>,
  takes: { readonly [Name in keyof Input]?: Taken },
): () => Input {
  doors.set(command, { act, takes: takes as Readonly<Record<string, Taken>> });
  return takeOptions(command, act.fields, takes);
}

/** Registers the command of an act, and returns it for options that are no field of the act. */
export function registerAct<Deps, Input, Done>(
  parent: Command,
  context: CliContext,
  door: ActCommand<Deps, Input, Done>,
): Command {
  const { act, by, ask, json, hints = {} } = door;
  const command = parent.command(door.name).description(door.description ?? "");
  const inputOf = takeAct(command, act, door.takes);
  command.option("--by <name>", by.says, parsePerson);
  if (ask !== undefined) command.option("--yes", "do it without asking");
  if (json !== undefined) command.option("--json", "print JSON");

  command.action(async () => {
    const options = command.optsWithGlobals<Record<string, unknown> & { by?: string; yes?: boolean }>();
    const input = inputOf();
    const actor = (by.who === "person" ? commandActor : scriptActor)(context, options.by);
    if (ask !== undefined && options.yes !== true) assertCanAsk(context);
    await withDatabase(context, command, async (opened) => {
      const deps = await door.deps(opened, options);
      const hinted = async (error: unknown): Promise<never> => {
        const hint = error instanceof ActRefused ? hints[error.refusal] : undefined;
        if (hint === undefined || !(error instanceof ActRefused)) throw error;
        const says = typeof hint === "string" ? hint : await hint(deps, input);
        throw new UsageError(`${error.message} ${says}`, { cause: error });
      };
      const shown = await ask?.(deps, input).catch(hinted);
      if (shown !== undefined && options.yes !== true) await confirm(context, shown.question);
      const call = { actor, input, decidedOn: shown?.decidedOn ?? null };
      const done = await act.run(deps, call).catch(hinted);
      print(context, command, () => door.say(done, { input, actor, deps }), json && (() => json(done)));
    });
  });
  return command;
}
