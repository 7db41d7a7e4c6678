import { PassThrough } from "node:stream";
import { Command } from "commander";
import type { SystemUser } from "../../../src/app/cli/acting-person.ts";
import type { CliContext } from "../../../src/app/cli/context.ts";
import { loadConfig } from "../../../src/app/config/config.ts";
import { createLog } from "../../../src/platform/log.ts";
import { createRuntime } from "../../../src/app/create-runtime.ts";
import { allParts } from "../../../src/main/parts.ts";

export interface CommandRun {
  out: string;
  err: string;
  error: unknown;
  /** What the command set for its process; null: nothing. */
  exitCode: number | null;
}

/** Runs one command in this process, with an environment, a standard input and an exit code of its own. */
export async function runCommand(
  register: (program: Command, context: CliContext) => void | Promise<void>,
  args: string[],
  given: {
    env: Record<string, string | undefined>;
    stdin?: string;
    terminal?: boolean;
    user?: SystemUser;
  },
): Promise<CommandRun> {
  // Room for all that a command prints: it is read when the command is done.
  const [stdout, stderr] = [1, 2].map(() => new PassThrough({ highWaterMark: 100_000_000 })) as [
    PassThrough,
    PassThrough,
  ];
  const stdin = new PassThrough();
  const { terminal = false } = given;
  const loaded = loadConfig(given.env);
  const context: CliContext = {
    version: "1.2.3",
    parts: allParts,
    stdout: stdout as unknown as NodeJS.WriteStream,
    stderr: stderr as unknown as NodeJS.WriteStream,
    stdin: Object.assign(stdin, { isTTY: terminal }) as unknown as NodeJS.ReadStream,
    user: () => given.user ?? { name: "tester", sudoUser: null },
    loaded: () => loaded,
    async withRuntime(name, run) {
      const runtime = createRuntime(allParts, loaded, createLog({ level: "silent", name }));
      try {
        return await run(runtime);
      } finally {
        await runtime.close();
      }
    },
  };
  const program = new Command("tallyhook").exitOverride().configureOutput({
    writeOut: (text) => void stdout.write(text),
    writeErr: (text) => void stderr.write(text),
  });
  await register(program, context);
  if (terminal) stdin.write(given.stdin ?? "");
  else stdin.end(given.stdin ?? "");
  // A command tells of failures by the exit code of its process, which here is the one of the tests.
  process.exitCode = undefined;
  const error: unknown = await program.parseAsync(["node", "tallyhook", ...args]).then(
    () => null,
    (reason: unknown) => reason,
  );
  const exitCode = process.exitCode === undefined ? null : Number(process.exitCode);
  process.exitCode = undefined;
  return { out: textOf(stdout), err: textOf(stderr), error, exitCode };
}

function textOf(stream: PassThrough): string {
  const bytes = stream.read() as Buffer | null;
  return bytes?.toString("utf8") ?? "";
}
