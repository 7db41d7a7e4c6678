import { Command, CommanderError } from "commander";
import { createContext } from "../cli/context.ts";
import { exitCodes, TallyhookError } from "../platform/errors.ts";
import { registerCommands } from "./commands.ts";

/** What may still run after a command is done (a socket that lingers) does not hold up the shell for longer. */
const lingerMs = 3_000;

/** Runs one command line and gives back its exit code; docs/operations.md lists the codes. */
export async function main(argv: readonly string[]): Promise<number> {
  const context = createContext();
  const program = new Command("tallyhook")
    .description("Mirrors a commerce service by its webhooks, and proves that the mirror is right.")
    .exitOverride()
    .showHelpAfterError('Try "tallyhook --help".');
  await registerCommands(program, context, argv.slice(2));
  const code = await run(program, argv, context.stderr);
  setTimeout(() => process.exit(code), lingerMs).unref();
  return code;
}

async function run(
  program: Command,
  argv: readonly string[],
  stderr: NodeJS.WritableStream,
): Promise<number> {
  try {
    await program.parseAsync(argv);
    return Number(process.exitCode ?? 0);
  } catch (error) {
    // Commander has printed its own message; help and version that were asked for are no errors.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : exitCodes.usage;
    if (error instanceof TallyhookError) {
      stderr.write(`tallyhook: ${error.message}\n`);
      return error.exitCode;
    }
    const details = error instanceof Error ? (error.stack ?? error.message) : String(error);
    stderr.write(`tallyhook: unexpected error. ${details}\n`);
    return exitCodes.unexpected;
  }
}
