import { exitCodes } from "../../platform/errors.ts";

/** What asks a process to end in good order; SIGHUP is what a terminal sends that is closed. */
export const stopSignals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Waits for Ctrl-C, a request to end, or the end of the terminal. A second one ends the process at once: whoever
 * asks twice does not want to wait, and nothing acknowledged is lost by it.
 */
export function untilSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let isFirst = true;
    const onSignal = (signal: NodeJS.Signals) => {
      if (!isFirst) process.exit(exitCodes.endedAtOnce);
      isFirst = false;
      resolve(signal);
    };
    for (const signal of stopSignals) process.on(signal, onSignal);
  });
}
