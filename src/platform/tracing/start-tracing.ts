import type { Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import { createRateLimitedWarnings } from "../rate-limited-warnings.ts";
import type { TracingSettings } from "./sdk.ts";
import { switchTracing } from "./tracing.ts";

export interface RunningTracing {
  /** Sends what waits, for `flushMs` at most, and ends all connections. Never throws; idempotent. */
  close(): Promise<void>;
}

/** The longest that the end of a process is held up by spans. */
const flushMs = 2_000;

/**
 * Loads the SDK and exports spans from now on, in the background: no work waits for an export, and spans that do not
 * fit into the queue are dropped. At most one at a time in a process.
 */
export async function startTracing(
  { log, clock }: { log: Log; clock: Clock },
  settings: TracingSettings,
): Promise<RunningTracing> {
  const { startSdk } = await import("./sdk.ts");
  const sdk = startSdk(createRateLimitedWarnings({ log, clock }, { everyMs: 60_000 }), settings);
  switchTracing(settings.deployment);
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    switchTracing(null);
    await sdk.close(flushMs);
  };
  return { close: () => (closing ??= close()) };
}
