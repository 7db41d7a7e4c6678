import type { Command } from "commander";
import type { CliContext } from "../../app/cli/context.ts";
import { untilSignal } from "../../app/cli/until-signal.ts";
import type { Runtime } from "../../app/runtime.ts";
import { migratedDatabase } from "../../app/schema.ts";

export function registerWorker(program: Command, context: CliContext): void {
  program.command("worker").action(async () => {
    const run = async (runtime: Runtime): Promise<void> => {
      const stopped = untilSignal();
      const { createProcessMetrics } = await import("../../app/metrics/serve-metrics.ts");
      const { runWorker } = await import("../../app/processes/run-worker.ts");
      const { runTracing } = await import("../../app/tracing.ts");
      await migratedDatabase(runtime);
      await runTracing(runtime);
      const metrics = createProcessMetrics(runtime, { name: "worker", version: context.version });
      const worker = await runWorker(runtime, { metrics });
      const admin = await metrics.serve(worker);
      runtime.log.info({ health: `${admin.url}/healthz` }, "the worker runs");
      const signal = await stopped;
      runtime.log.info({ signal }, "the worker stops");
    };
    await context.withRuntime("worker", run, {
      statementSilenceLimitMs: (config) => config.databaseSilenceSeconds * 1_000,
    });
  });
}
