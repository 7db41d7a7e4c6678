import { Command, CommanderError } from "commander";
import { TallyhookError, exitCodes } from "../platform/errors.ts";
import { errorCode } from "../platform/postgres/errors.ts";
import { visibleLines, visibleMessage } from "../platform/readable-text.ts";
import { strikeOutSecrets } from "../platform/redaction.ts";
import { createContext } from "./cli/context.ts";
import { stopSignals } from "./cli/until-signal.ts";
import { registerCommands } from "./commands.ts";

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

/** The two streams that a command prints to, with somebody who hears of their errors. */
export interface StandardOutput {
  /** Resolves when all that was printed is out of this process, however slowly it is read, or cannot be taken any more. */
  flush(): Promise<void>;
  /** Why what was printed is not whole; null where it is, and where its reader wanted no more. */
  problem(): string | null;
  /** True once the terminal that was printed to is known to be closed. */
  isTerminalGone(): boolean;
  /** True for the error of a write to standard output, which a command may also meet while it waits for room. */
  isItsError(error: unknown): boolean;
}

/**
 * Hears the errors of both streams, which without a listener end the process on the spot and leave behind what it was
 * to close. A reader that has seen enough (`| head`) is no failure, a full disk is; nothing that befalls standard error is.
 */
export function guardStandardOutput(
  stdout: NodeJS.WriteStream,
  stderr: NodeJS.WriteStream,
): StandardOutput {
  const errors = new Set<unknown>();
  // A terminal that was closed answers EIO, which of a disk is a failure.
  const isClosedTerminal = (code: string | undefined) => code === "EIO" && stdout.isTTY;
  const isGone = (code: string | undefined) => code === "EPIPE" || isClosedTerminal(code);
  stdout.on("error", (error) => errors.add(error));
  stderr.on("error", () => {});
  return {
    flush: async () => {
      await Promise.all([stdout, stderr].map(allTaken));
    },
    problem: () => {
      const failed = [...errors].map(errorCode).filter((code) => !isGone(code));
      if (failed.length === 0) return null;
      const cause = failed[0] === "ENOSPC" ? "the disk is full" : (failed[0] ?? "unknown error");
      return `Standard output cannot be written (${cause}): what was printed is not whole. Make room, or print elsewhere.`;
    },
    isTerminalGone: () => [...errors].map(errorCode).some(isClosedTerminal),
    isItsError: (error) => errors.has(error),
  };
}

/** Writes are taken in their order: once nothing is taken, so is all that came before it. */
const allTaken = (stream: NodeJS.WritableStream): Promise<void> =>
  new Promise((resolve) => void stream.write("", () => resolve()));

const lookEveryMs = 500;

/**
 * npm (`npx tallyhook`, `npm start`) ends at SIGTERM and tells nobody, so that whatever it started would go on alone. A
 * program that npm started ends in good order once its parent is gone. Started in any other way it may well outlive
 * its parent, as a service does.
 */
export function endWithNpm(
  environment: Readonly<Record<string, string | undefined>>,
  stderr: NodeJS.WritableStream,
): void {
  if (environment["npm_execpath"] === undefined) return;
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    stderr.write("tallyhook: npm, which started this program, has ended. Stopping.\n");
    process.kill(process.pid, "SIGTERM");
  }, lookEveryMs);
  timer.unref();
}
