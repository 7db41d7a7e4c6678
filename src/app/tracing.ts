import { databaseName } from "../platform/postgres/migrations.ts";
import type { Runtime } from "./runtime.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import { createRateLimitedWarnings } from "../platform/rate-limited-warnings.ts";
import type { TracingSettings } from "../platform/tracing/sdk.ts";
import { switchTracing } from "../platform/tracing/tracing.ts";

/**
 * Exports spans until the runtime ends, where OTEL_EXPORTER_OTLP_ENDPOINT is set; else its SDK is not loaded. Call it
 * before the code that makes spans starts, so that it ends after it. The database must be migrated.
 */
export async function runTracing(
  runtime: Pick<Runtime, "config" | "secrets" | "log" | "wallClock" | "db" | "onClose">,
): Promise<void> {
  const { config, secrets, log, wallClock: clock } = runtime;
  if (config.tracing === null) return;
  const tracing = await startTracing(
    { log, clock },
    {
      endpoint: config.tracing.endpoint,
      headers: secrets.tracingHeaders,
      serviceName: `tallyhook-${String(log.bindings()["name"])}`,
      deployment: await databaseName(await runtime.db()),
    },
  );
  runtime.onClose(() => tracing.close());
}

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
  const { startSdk } = await import("../platform/tracing/sdk.ts");
  const sdk = startSdk(createRateLimitedWarnings({ log, clock }, { everyMs: 60_000 }), settings);
  switchTracing(settings.deployment);
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    switchTracing(null);
    await sdk.close(flushMs);
  };
  return { close: () => (closing ??= close()) };
}
