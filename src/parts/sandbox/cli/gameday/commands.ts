import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { programEntry } from "../../../../app/program-entry.ts";

/** Processes of this program, with the settings of the game day and without this process' environment. */
export interface Commands {
  /** Runs a command to its end. Throws where its exit code is not among `codes`. */
  run(words: readonly string[], options?: { input?: string; codes?: readonly number[] }): Promise<void>;
  /** Starts a process that keeps running. */
  start(words: readonly string[]): ChildProcess;
  /** Ends all running processes and waits for them: immediately, or in order. */
  close(signal?: "SIGKILL" | "SIGTERM"): Promise<void>;
}

export function createCommands(cwd: string, environment: () => Readonly<Record<string, string>>): Commands {
  const running = new Set<ChildProcess>();
  function launch(words: readonly string[]): ChildProcess {
    const child = spawn(process.execPath, [programEntry, ...words], {
      cwd,
      env: environment(),
      stdio: ["pipe", "pipe", "pipe"],
    });
    running.add(child);
    child.once("exit", () => running.delete(child));
    return child;
  }
  return {
    async run(words, { input = "", codes = [0] } = {}) {
      const child = launch(words);
      let said = "";
      for (const stream of [child.stdout, child.stderr]) {
        stream?.on("data", (part: Buffer) => (said += part.toString()));
      }
      child.stdin?.end(input);
      const [code] = (await once(child, "close")) as [number | null];
      if (code !== null && codes.includes(code)) return;
      throw new Error(`"tallyhook ${words.join(" ")}" ended with ${code}: ${said.slice(-2_000)}`);
    },
    start(words) {
      const child = launch(words);
      // An unread pipe would block it in the end.
      child.stdout?.resume();
      child.stderr?.resume();
      return child;
    },
    async close(signal = "SIGKILL") {
      await Promise.all(
        [...running].map((child) => {
          const ended = once(child, "exit");
          child.kill(signal);
          return ended;
        }),
      );
    },
  };
}
