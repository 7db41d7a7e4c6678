import { type Command, InvalidArgumentError, Option } from "commander";
import { ActRefused, type AnyAct, type CommandAct, type Refusal } from "../people/act.ts";
import type { Actor } from "../people/audit.ts";
import type { Field } from "../people/fields.ts";
import { UsageError } from "../../platform/errors.ts";
import { nearestName } from "../../platform/nearest-name.ts";
import type { Runtime } from "../runtime.ts";
import { commandActor, parsePerson, scriptActor } from "./acting-person.ts";
import { assertCanAsk, confirm } from "./confirm.ts";
import type { CliContext } from "./context.ts";

/** The command-line form of a field: `<id>`, or `--note <text>`. */
interface Taken {
  flags: string;
  says: string;
  /** The value without the option; absent: the act's own default. */
  default?: string;
  /** Translates the typed text for the act; undefined: impossible. Absent: the same text. */
  means?(typed: string): string | undefined;
}

/** Appended to the message of a refusal. */
type Hint<Deps, Input> = string | ((deps: Deps, input: Input) => Promise<string>);

/** The door of an act on the command line. */
export interface ActCommand<Deps, Input, Done> {
  act: CommandAct<Deps, Input, Done>;
  name: string;
  description: string;
  /** Fields in the order of help. A field without flags takes its default where nothing was typed. */
  takes: { readonly [Name in keyof Input]?: Taken };
  /** `person`: asks for a name where the system knows none; `script`: records the system's user then. */
  by: { who: "person" | "script"; says: string };
  /** Opened first. `options`: those of the command in addition to the act's fields. */
  deps(runtime: Runtime, options: Readonly<Record<string, unknown>>): Promise<Deps>;
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

/** Registers the command of an act, and returns it for options that are no field of the act. */
export function registerAct<Deps, Input, Done>(
  parent: Command,
  context: CliContext,
  door: ActCommand<Deps, Input, Done>,
): Command {
  const { act, by, ask, json, hints = {} } = door;
  const takes = door.takes as Readonly<Record<string, Taken>>;
  const fields = act.fields as Readonly<Record<string, Field<unknown>>>;
  const positional = Object.keys(takes).filter((name) => isArgument(takes[name]));
  const command = parent.command(door.name).description(door.description);
  doors.set(command, { act, takes });
  for (const [name, taken] of Object.entries(takes)) {
    const field = fields[name] as Field<unknown>;
    if (positional.includes(name)) {
      command.argument(taken.flags, taken.says, parserOf(field, taken.means));
    } else command.addOption(optionOf(taken, field));
  }
  command.option("--by <name>", by.says, parsePerson);
  if (ask !== undefined) command.option("--yes", "do it without asking");
  if (json !== undefined) command.option("--json", "print JSON");

  command.action(async () => {
    // Commander assigns an option that its parent has as well to the parent.
    const options = command.optsWithGlobals<Record<string, unknown> & ActOptions>();
    const given = ([name, { absent }]: [string, Field<unknown>]): [string, unknown] => {
      const typed = positional.includes(name)
        ? (command.processedArgs as unknown[])[positional.indexOf(name)]
        : options[optionName(takes[name])];
      return [name, typed ?? absent?.value];
    };
    const input = Object.fromEntries(Object.entries(fields).map(given)) as Input;
    const actor = (by.who === "person" ? commandActor : scriptActor)(context, options.by);
    if (ask !== undefined && options.yes !== true) assertCanAsk(context);
    await context.withRuntime(
      parent.name(),
      async (runtime) => {
        const deps = await door.deps(runtime, options);
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
        context.stdout.write(
          json !== undefined && options.json === true
            ? `${JSON.stringify(json(done))}\n`
            : door.say(done, { input, actor, deps }),
        );
      },
      { logLevel: "warn" },
    );
  });
  return command;
}

interface ActOptions {
  by?: string;
  yes?: boolean;
  json?: boolean;
}

const isArgument = (taken: Taken | undefined): boolean => taken?.flags.startsWith("-") === false;

const optionName = (taken: Taken | undefined): string =>
  taken === undefined ? "" : new Option(taken.flags).attributeName();

/** A parser for a command's argument or option that is such a field. */
export const parserOf =
  <T>({ read, wanted, names, isList }: Field<T>, means: Taken["means"] = (typed) => typed) =>
  (typed: string, former?: T): T => {
    const meant = means(typed);
    const all = isList === true && former !== undefined ? [former, meant].flat().join(" ") : meant;
    const value = all === undefined ? undefined : read(all);
    if (value !== undefined) return value;
    const near = names === undefined ? null : nearestName(typed, names);
    const hint = near === null ? "" : ` Did you mean "${near}"?`;
    throw new InvalidArgumentError(`It has to be ${wanted}.${hint}`);
  };

function optionOf({ flags, says, default: preset, means }: Taken, field: Field<unknown>): Option {
  const option = new Option(flags, says);
  // An option without a value is a flag.
  if (option.isBoolean()) return option;
  const parse = parserOf(field, means);
  option.argParser(parse);
  if (preset !== undefined) return option.default(parse(preset));
  return option.makeOptionMandatory(field.absent === undefined);
}
