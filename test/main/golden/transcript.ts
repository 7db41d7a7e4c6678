import { execFile } from "node:child_process";
import { tmpdir } from "node:os";
import { type Command, CommanderError } from "commander";
import { inject } from "vitest";
import { withServiceAdvice } from "../../../src/app/cli/context.ts";
import { registerCommands } from "../../../src/main/commands.ts";
import { loadConfig } from "../../../src/app/config/config.ts";
import { TallyhookError, exitCodes } from "../../../src/platform/errors.ts";
import { withRoleAdvice } from "../../../src/platform/postgres/errors.ts";
import { printableMessage } from "../../../src/platform/readable-text.ts";
import { runCommand } from "../cli/command-line.ts";

/** What a command line printed, and how it ended. */
export interface Spoken {
  out: string;
  err: string;
  code: number;
}

export interface Given {
  env: Record<string, string>;
  /** What is typed, or comes by a pipe. */
  stdin?: string;
  /** Somebody sits at it. */
  terminal?: boolean;
}

/** Runs a command line in this process, put together and ended as `main` does it. */
export async function speak(args: readonly string[], given: Given): Promise<Spoken> {
  const { out, err, error, exitCode } = await runCommand(
    async (program, context) => {
      program.configureOutput({
        getOutHelpWidth: () => 118,
        getErrHelpWidth: () => 118,
        getOutHasColors: () => false,
        getErrHasColors: () => false,
      });
      await registerCommands(program, context, args);
      endAsMain(program, "node src/bin/tallyhook.js");
    },
    [...args],
    given,
  );
  const end = endOf(error, given.env);
  return { out, err: err + end.said, code: end.code ?? exitCode ?? 0 };
}

function endAsMain(command: Command, name: string): void {
  command.exitOverride().showHelpAfterError(`Try "${name} --help".`);
  for (const each of command.commands) endAsMain(each, `${name} ${each.name()}`);
}

function endOf(thrown: unknown, env: Given["env"]): { said: string; code: number | null } {
  if (thrown === null) return { said: "", code: null };
  if (thrown instanceof CommanderError) return { said: "", code: thrown.exitCode === 0 ? 0 : exitCodes.usage };
  const error = withServiceAdvice(withRoleAdvice(thrown), loadConfig(env).config);
  if (!(error instanceof TallyhookError)) throw error;
  return { said: `tallyhook: ${printableMessage(error.message)}\n`, code: error.exitCode };
}

/** Runs it as a process of its own, compiled, as a deployment does. */
export function speakAlone(args: readonly string[], { env, stdin = "" }: Given): Promise<Spoken> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [inject("program"), ...args],
      { cwd: tmpdir(), env: { PATH: process.env["PATH"], ...env }, maxBuffer: 10_000_000 },
      (error, out, err) => resolve({ out, err, code: error === null ? 0 : Number(error.code) }),
    );
    child.stdin?.end(stdin);
  });
}

/** What differs from run to run, at its place: each match becomes this text. */
export type Place = readonly [where: RegExp | string, shown: string | ((match: string) => string)];

/** Of the day of the run; the history's own times are of another year, and stay. */
const days = [-1, 0, 1].map((day) => new Date(Date.now() + day * 86_400_000).toISOString().slice(0, 10)).join("|");

/** The same with the minutes in which the sandbox's clock seems to stand, as whoever asks it reckons on. */
const moments = `(?:(?:${days})T\\d\\d:\\d\\d|2025-05-01T06:0\\d):\\d\\d`;

/** Everywhere. Widths stay, so that tables do. */
const places: readonly Place[] = [
  [new RegExp(`${moments}\\.\\d{3}Z`, "g"), "yyyy-mm-ddThh:mm:ss.sssZ"],
  [new RegExp(`${moments}\\.\\d{6}Z`, "g"), "yyyy-mm-ddThh:mm:ss.ssssssZ"],
  [new RegExp(`${moments}(?:\\.\\d+)?\\+00:00`, "g"), "yyyy-mm-ddThh:mm:ss.ssssss+00:00"],
  [new RegExp(`(?:${days})(?!\\d)`, "g"), "yyyy-mm-dd"],
  [/127\.0\.0\.1:\d{4,5}/g, "127.0.0.1:port"],
  [/tallyhook_test_\w+/g, "database"],
  [/\b(full:[^"]*Z):[0-9a-f-]{36}/g, (match) => match.replace(/.{36}$/, "key-of-the-run")],
  [/\d+ s from the service's/g, "n s from the service's"],
  [/Wait \d+ seconds/g, "Wait n seconds"],
  [/process \d+ on \S+?(?=[\s;:,"]|$)/g, "process n on host"],
  [/\u001b/g, "␛"],
];

export function steady(text: string, own: readonly Place[]): string {
  return [...own, ...places].reduce(
    (all, [where, shown]) =>
      all.replaceAll(where, typeof shown === "string" ? () => shown : (match: string) => shown(match)),
    text,
  );
}

/** A command line, how it ended and all that it printed; lines of its standard error begin with an exclamation mark. */
export function transcript(line: string, { out, err, code }: Spoken): string {
  const whole = (text: string) => (text === "" || text.endsWith("\n") ? text : `${text}\n(no line break)\n`);
  return `$ ${line}   # exit ${code}\n${whole(out)}${whole(err).replaceAll(/^(?=.)/gm, "! ")}`;
}

/** The help of a command that asked for it, without the lines and the lines' room that every help has. */
export function helpText({ out, err, code }: Spoken): string {
  if (code !== 0 || err !== "") throw new Error(`Help ended with ${code} and said: ${err}`);
  return out
    .replaceAll(/^ +(?:-h, --help|help \[command\]) +display help for command\n/gm, "")
    .replaceAll(/^(?:Options:)?\n/gm, "");
}
