import { Command, CommanderError } from "commander";
import { createContext } from "../cli/context.ts";
import { stopSignals } from "../cli/until-signal.ts";
import { exitCodes, TallyhookError } from "../platform/errors.ts";
import { strikeOutSecrets } from "../platform/secret-shapes.ts";
import { visibleLines, visibleMessage } from "../platform/visible-text.ts";
import { registerCommands } from "./commands.ts";
import { guardStandardOutput } from "./standard-output.ts";
import { endWithNpm } from "./end-with-npm.ts";
import type { StandardOutput } from "./standard-output.ts";

/** What may still run after a command is done (a socket that lingers) does not hold up the shell for longer. */
const lingerMs = 3_000;

/** Runs one command line and gives back its exit code; docs/operations.md lists the codes. */
export async function main(argv: readonly string[], version: string): Promise<number> {
  const context = createContext();
  const output = guardStandardOutput(context.stdout, context.stderr);
  endWithNpm(process.env, context.stderr);
  const program = new Command("tallyhook")
    .description("Mirrors a commerce service by its webhooks, and proves that the mirror is right.")
    .version(version, "-V, --version", "print the version")
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(visibleMessage(text)) });
  await registerCommands(program, context, argv.slice(2));
  pointAtHelp(program, "tallyhook");
  const code = await run(program, argv, context.stderr, output);
  // There is nothing left to be stopped in good order, at most a reader to be waited for.
  for (const signal of stopSignals) process.removeAllListeners(signal);
  await output.flush();
  // Node aborts where it cannot reset the terminal at its end: all is closed, so that the hang-up may end it.
  if (output.isTerminalGone()) process.kill(process.pid, "SIGHUP");
  const problem = output.problem();
  if (problem !== null) context.stderr.write(`tallyhook: ${problem}\n`);
  const told = problem === null ? code : exitCodes.configuration;
  setTimeout(() => process.exit(told), lingerMs).unref();
  return told;
}

async function run(
  program: Command,
  argv: readonly string[],
  stderr: NodeJS.WritableStream,
  output: StandardOutput,
): Promise<number> {
  try {
    await program.parseAsync(argv);
    return Number(process.exitCode ?? 0);
  } catch (error) {
    // Commander has printed its own message; help and version that were asked for are no errors.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : exitCodes.usage;
    if (error instanceof TallyhookError) {
      stderr.write(`tallyhook: ${visibleMessage(error.message)}\n`);
      return error.exitCode;
    }
    if (output.isItsError(error)) return 0;
    const details = error instanceof Error ? (error.stack ?? error.message) : String(error);
    stderr.write(`tallyhook: unexpected error. ${visibleLines(strikeOutSecrets(details))}\n`);
    return exitCodes.unexpected;
  }
}

/** After a mistake each command points at its own options, not at the list of all commands. */
function pointAtHelp(command: Command, name: string): void {
  command.showHelpAfterError(`Try "${name} --help".`);
  for (const each of command.commands) pointAtHelp(each, `${name} ${each.name()}`);
}
