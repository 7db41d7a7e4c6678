import { type Command, InvalidArgumentError, Option } from "commander";
import type { Knex } from "knex";
import { exitCodes } from "../../platform/errors.ts";
import { nearestName } from "../../platform/nearest-name.ts";
import type { LogLevel } from "../../platform/log.ts";
import { type Field, type Fields, wholeNumber } from "../people/fields.ts";
import type { Runtime } from "../runtime.ts";
import { migratedDatabase } from "../schema.ts";
import type { CliContext } from "./context.ts";

/** How a command line gives one value: `<id>`, or `--note <text>`. */
export interface Taken {
  flags: string;
  says: string;
  /** The text where none is given; absent: the value that the field has then. */
  default?: string;
  /** The field's text for what was typed; undefined: there can be none. Absent: the same text. */
  means?(typed: string): string | undefined;
  /** The option that it cannot be given with. */
  conflicts?: string | readonly string[];
}

/** The values that a command takes, in the order of its help. */
export type Takes<Input> = { readonly [Name in keyof Input]: Taken & { readonly is: Field<Input[Name]> } };

/** So many rows of a list where nothing is said. */
export const howMany = (usual: number) => ({
  is: wholeNumber(1, 10_000),
  flags: "--limit <n>",
  says: "how many",
  default: String(usual),
});

/** What a command works with. */
export interface Opened {
  db: Knex;
  runtime: Runtime;
}

/** Runs a command's work on the migrated database. It logs warnings only, to standard error. */
export const withDatabase = <T>(
  context: CliContext,
  command: Command | string,
  work: (opened: Opened) => Promise<T>,
  logLevel: LogLevel = "warn",
): Promise<T> =>
  context.withRuntime(
    typeof command === "string" ? command : firstWord(command),
    async (runtime) => work({ db: await migratedDatabase(runtime), runtime }),
    { logLevel },
  );

const firstWord = (command: Command): string => (command.parent?.parent ? firstWord(command.parent) : command.name());

/** A command that reads from the database and prints. */
export interface Reading<Input, Found> {
  takes?: Takes<Input>;
  read(opened: Opened, input: Input): Promise<Found>;
  /** What it prints for people. */
  text(found: Found, input: Input): string;
  /** What `--json` prints; absent: there is no such option. */
  json?(found: Found, input: Input): unknown;
  /** Said to people on standard error. */
  note?(found: Found, input: Input): string | null;
  /** Whether what is compared differs: the exit code is 3 then. */
  differs?(found: Found): boolean;
}

/** Makes a command, which has its name and description, one that reads. Returns it for more of its help. */
export function registerReading<Input, Found>(
  command: Command,
  context: CliContext,
  { takes, read, text, json, note, differs }: Reading<Input, Found>,
): Command {
  const inputOf = takes === undefined ? () => ({}) as Input : takeAll(command, takes);
  if (json !== undefined) command.option("--json", "print JSON");
  return command.action(async () => {
    const input = inputOf();
    const found = await withDatabase(context, command, (opened) => read(opened, input));
    print(context, command, () => text(found, input), json && (() => json(found, input)));
    const said = isJson(command) ? null : (note?.(found, input) ?? null);
    if (said !== null) context.stderr.write(`tallyhook: ${said}\n`);
    if (differs?.(found) === true) process.exitCode = exitCodes.differs;
  });
}

/** Prints JSON in one line where the command has `--json` and was given it, otherwise the text. */
export function print(
  { stdout }: Pick<CliContext, "stdout">,
  command: Command,
  text: () => string,
  json: (() => unknown) | undefined,
): void {
  stdout.write(json !== undefined && isJson(command) ? `${JSON.stringify(json())}\n` : text());
}

const isJson = (command: Command): boolean => command.optsWithGlobals<{ json?: boolean }>().json === true;

/** Gives a command arguments and options that have a field each. What it returns reads their values when it runs. */
export function takeAll<Input>(command: Command, takes: Takes<Input>): () => Input {
  const fields = Object.entries<Takes<Input>[keyof Input]>(takes).map(([name, { is }]) => [name, is]);
  return takeOptions(command, Object.fromEntries(fields) as Fields<Input>, takes);
}

/**
 * Gives a command its arguments and options. What it returns reads their values when the command runs; a field without
 * flags is what it is where nothing was typed.
 */
export function takeOptions<Input>(
  command: Command,
  allFields: Fields<Input>,
  allTaken: { readonly [Name in keyof Input]?: Taken },
): () => Input {
  const fields = Object.entries<Field<unknown>>(allFields);
  const takes = allTaken as Readonly<Record<string, Taken>>;
  const positional = Object.keys(takes).filter((name) => takes[name]?.flags.startsWith("-") === false);
  for (const [name, taken] of Object.entries(takes)) {
    const field = (allFields as Readonly<Record<string, Field<unknown>>>)[name] as Field<unknown>;
    if (positional.includes(name)) command.argument(taken.flags, taken.says, parserOf(field, taken.means));
    else command.addOption(optionOf(taken, field));
  }
  const typed = (name: string): unknown => {
    const taken = takes[name];
    if (taken === undefined) return undefined;
    if (positional.includes(name)) return (command.processedArgs as unknown[])[positional.indexOf(name)];
    // Commander assigns an option that its parent has as well to the parent.
    return command.optsWithGlobals<Record<string, unknown>>()[new Option(taken.flags).attributeName()];
  };
  return () => Object.fromEntries(fields.map(([name, { absent }]) => [name, typed(name) ?? absent?.value])) as Input;
}

/** A parser for a command's argument or option that is such a field. */
export const parserOf =
  <T>({ read, wanted, names, isList }: Field<T>, means: Taken["means"] = (typed) => typed) =>
  (typed: string, former?: T): T => {
    const meant = means(typed);
    const value = meant === undefined ? undefined : read(meant);
    if (value !== undefined) return isList === true && former !== undefined ? joined(former, value) : value;
    const near = names === undefined ? null : nearestName(typed, names);
    throw new InvalidArgumentError(near === null ? `Use ${wanted}.` : `Did you mean "${near}"?`);
  };

/** A list with the values of another one that it lacks. */
const joined = <T>(list: T, more: T): T => [...new Set([list, more].flat())] as T;

function optionOf({ flags, says, default: preset, means, conflicts }: Taken, field: Field<unknown>): Option {
  const option = new Option(flags, says).conflicts([conflicts ?? []].flat());
  // An option without a value is a flag.
  if (option.isBoolean()) return option;
  const parse = parserOf(field, means);
  option.argParser(parse);
  if (preset !== undefined) return option.default(parse(preset));
  return option.makeOptionMandatory(field.absent === undefined);
}
