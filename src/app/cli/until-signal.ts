import { exitCodes } from "../../platform/errors.ts";

/** The signals that ask a process to shut down in order. A closed terminal sends SIGHUP. */
export const stopSignals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Waits for one of `stopSignals`. A second signal ends the process immediately, without losing an acknowledged event.
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
