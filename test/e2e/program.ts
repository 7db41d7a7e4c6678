import { tmpdir } from "node:os";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { inject } from "vitest";
import { signalIfThere } from "../support/process-tree.ts";

const maxOutput = 1_000_000;

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** A `tallyhook` command as a process of its own, in a process group of its own. */
export interface Program {
  readonly name: string;
  readonly pid: number;
  readonly exited: Promise<Exit>;
  isRunning(): boolean;
  /** What it printed so far, both streams; of a lot only the end. */
  output(): string;
  /** Resolves once it has printed this; rejects with its output when it ends before, or at the deadline. */
  printed(text: string, withinMs?: number): Promise<void>;
  /** Signals the whole group, as a terminal does at Ctrl-C. */
  signalGroup(signal: NodeJS.Signals): void;
  /** kill -9 of the group; returns when it is gone. */
  kill(): Promise<void>;
  /** SIGTERM, and its exit. */
  stop(): Promise<Exit>;
}

const running = new Set<Program>();
process.once("exit", () => {
  for (const { pid } of running) signalIfThere(-pid, "SIGKILL");
});

/** For `afterAll`: ends what a failed test left behind. */
export async function killPrograms(): Promise<void> {
  await Promise.all([...running].map((program) => program.kill()));
}

/**
 * Starts `tallyhook <args>`, compiled, as a deployment does. `environment` is all it gets; `input` is its standard input;
 * `entry` is that of another version of the program.
 */
export function runTallyhook(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  input?: string,
  entry: string = inject("program"),
): Program {
  const name = `tallyhook ${args.join(" ")}`;
  const child = spawn(process.execPath, [entry, ...args], {
    // A developer's .env in the project is none of the tests' business.
    cwd: tmpdir(),
    env: { PATH: process.env["PATH"], ...environment },
    detached: true,
    stdio: ["pipe", "pipe", "pipe"],
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${name} was not started`);
  child.stdin.on("error", () => {});
  child.stdin.end(input ?? "");

  let output = "";
  const watchers = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (chunk: string) => {
      output = (output + chunk).slice(-maxOutput);
      for (const watch of watchers) watch();
    });
  }
  const exited = once(child, "close").then(([code, signal]): Exit => {
    running.delete(program);
    for (const watch of watchers) watch();
    return { code: code as Exit["code"], signal: signal as Exit["signal"] };
  });
  const isRunning = (): boolean => child.exitCode === null && child.signalCode === null;

  const program: Program = {
    name,
    pid,
    exited,
    isRunning,
    output: () => output,
    async printed(text, withinMs = 120_000) {
      let timer: NodeJS.Timeout | undefined;
      let watch = (): void => {};
      try {
        await new Promise<void>((resolve, reject) => {
          const fail = (why: string) => reject(new Error(`${name} ${why}: ${text}\n${output}`));
          watch = () => {
            if (output.includes(text)) resolve();
            else if (!isRunning()) fail("ended and did not print");
          };
          timer = setTimeout(() => fail(`did not print within ${withinMs} ms`), withinMs);
          watchers.add(watch);
          watch();
        });
      } finally {
        clearTimeout(timer);
        watchers.delete(watch);
      }
    },
    signalGroup: (signal) => void signalIfThere(-pid, signal),
    async kill() {
      signalIfThere(-pid, "SIGKILL");
      await exited;
    },
    async stop() {
      signalIfThere(pid, "SIGTERM");
      return exited;
    },
  };
  running.add(program);
  return program;
}
