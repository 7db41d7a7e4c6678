import { constants } from "node:os";
import { killProcesses } from "./processes.ts";

const signals = ["SIGHUP", "SIGINT", "SIGTERM"] as const;

/**
 * Closes everything that a run has started, at any kind of end: PostgreSQL and the programs outlive this process
 * otherwise. The function that is returned does so at the end; a signal, an uncaught error, and a closed output do so
 * as well and end the process. All processes of benchmarks are killed first.
 */
export function endInAnyCase(close: () => Promise<void>): () => Promise<void> {
  let ending: Promise<void> | null = null;
  const end = (): Promise<void> =>
    (ending ??= (async () => {
      killProcesses();
      await close();
    })());
  const endWith = (code: number): void => {
    // What fails from now on fails because of it.
    if (ending !== null) return;
    const exit = () => process.exit(code);
    end().then(exit, exit);
  };
  for (const signal of signals) {
    process.on(signal, () => endWith(128 + constants.signals[signal]));
  }
  process.stdout.on("error", () => endWith(128 + constants.signals.SIGPIPE));
  process.on("uncaughtException", (error) => {
    if (ending === null) console.error(error);
    endWith(1);
  });
  return end;
}
