import { databaseName } from "../platform/postgres/migrations.ts";
import { startTracing } from "../platform/tracing/start-tracing.ts";
import type { Runtime } from "./runtime.ts";

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
