import { tallyhook } from "../platform/command-line.ts";
import { Command, CommanderError } from "commander";
import { TallyhookError, exitCodes } from "../platform/errors.ts";
import { errorCode } from "../platform/postgres/errors.ts";
import { linesWithoutControls, printableMessage } from "../platform/readable-text.ts";
import { redactSecrets } from "../platform/redaction.ts";
import { createContext } from "../app/cli/context.ts";
import { showWide } from "../app/cli/screen.ts";
import { stopSignals } from "../app/cli/until-signal.ts";
import { registerCommands } from "./commands.ts";
import { allParts } from "./parts.ts";

/** The most by which a leftover handle, such as an open socket, delays the exit of a finished command. */
const lingerMs = 3_000;

/** Runs one command line and returns its exit code; docs/operations.md lists the codes. */
export async function main(argv: readonly string[], version: string): Promise<number> {
  const context = createContext(version, allParts);
  const output = guardStandardOutput(context.stdout, context.stderr);
  endWithNpm(process.env, context.stderr);
  const program = new Command("tallyhook")
    .description("Mirrors a commerce service into PostgreSQL by its webhooks, and proves that the mirror is right.")
    .version(version, "-V, --version", "print the version")
    .option("--wide", "do not shorten tables to fit the terminal")
    .on("option:wide", showWide)
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(printableMessage(text)) });
  await registerCommands(program, context, argv.slice(2));
  pointAtHelp(program, tallyhook("").trimEnd());
  const code = await run(program, argv, context.stderr, output);
  // All work has ended, so a signal may end the process while it waits for a slow reader.
  for (const signal of stopSignals) process.removeAllListeners(signal);
  await output.flush();
  // Node aborts at exit if it cannot reset a closed terminal. Everything is closed, so SIGHUP may end the process.
  if (output.isTerminalGone()) process.kill(process.pid, "SIGHUP");
  const problem = output.problem();
  if (problem !== null) context.stderr.write(`tallyhook: ${problem}\n`);
  const exitCode = problem === null ? code : exitCodes.configuration;
  setTimeout(() => process.exit(exitCode), lingerMs).unref();
  return exitCode;
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
    // Commander has printed its own message. Help and version on request are not errors.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : exitCodes.usage;
    if (error instanceof TallyhookError) {
      stderr.write(`tallyhook: ${printableMessage(error.message)}\n`);
      return error.exitCode;
    }
    if (output.isItsError(error)) return 0;
    const details = error instanceof Error ? (error.stack ?? error.message) : String(error);
    stderr.write(`tallyhook: unexpected error. ${linesWithoutControls(redactSecrets(details))}\n`);
    return exitCodes.unexpected;
  }
}

/** After a usage error, each command points at its own options, not at the list of all commands. */
function pointAtHelp(command: Command, name: string): void {
  command.showHelpAfterError(`Try "${name} --help".`);
  for (const each of command.commands) pointAtHelp(each, `${name} ${each.name()}`);
}

/** Watches the streams that a command prints to. */
export interface StandardOutput {
  /** Resolves when the reader has taken all output, however slowly, or can take no more. */
  flush(): Promise<void>;
  /** Why the output is incomplete; null if it is complete, or if its reader closed it. */
  problem(): string | null;
  /** True once the terminal is known to be closed. */
  isTerminalGone(): boolean;
  /** True for the error of a write to standard output. A command may also meet it while it waits for a slow reader. */
  isItsError(error: unknown): boolean;
}

/**
 * Listens for errors of both streams. Without a listener they end the process at once, before it can close anything. A
 * reader that has seen enough (`| head`) is not a failure; a full disk is. Errors of standard error are ignored.
 */
export function guardStandardOutput(stdout: NodeJS.WriteStream, stderr: NodeJS.WriteStream): StandardOutput {
  const errors = new Set<unknown>();
  // A closed terminal answers EIO, which from a disk is a failure.
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
      return `Standard output cannot be written (${cause}), so the output is incomplete. Make room, or write it elsewhere.`;
    },
    isTerminalGone: () => [...errors].map(errorCode).some(isClosedTerminal),
    isItsError: (error) => errors.has(error),
  };
}

/** Writes complete in order: once an empty write completes or fails, so have all before it. */
const allTaken = (stream: NodeJS.WritableStream): Promise<void> =>
  new Promise((resolve) => void stream.write("", () => resolve()));

const checkEveryMs = 500;

/**
 * npm (`npx tallyhook`, `npm start`) ends at SIGTERM without telling its children, which would keep running. So a
 * program that npm started shuts down once its parent is gone. A program started in any other way may outlive its
 * parent, as a service does.
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
  }, checkEveryMs);
  timer.unref();
}
