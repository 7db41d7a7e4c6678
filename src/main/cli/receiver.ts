import type { Command } from "commander";
import type { CliContext } from "../../app/cli/context.ts";
import { untilSignal } from "../../app/cli/until-signal.ts";
import type { Runtime } from "../../app/runtime.ts";
import { migratedDatabase } from "../../app/schema.ts";

/**
 * The receiver's statements (secrets, schema, counts of answers) take milliseconds. Storing events has a limit of its
 * own.
 */
const statementSilenceLimitMs = (): number => 10_000;

export function registerReceiver(program: Command, context: CliContext): void {
  program.command("receiver").action(async () => {
    const run = async (runtime: Runtime): Promise<void> => {
      const stopped = untilSignal();
      const { createProcessMetrics } = await import("../../app/metrics/serve-metrics.ts");
      const { runReceiver } = await import("../../app/processes/run-receiver.ts");
      const { runTracing } = await import("../../app/tracing.ts");
      await migratedDatabase(runtime);
      await runTracing(runtime);
      const metrics = createProcessMetrics(runtime, {
        name: "receiver",
        version: context.version,
      });
      const { url } = await runReceiver(runtime, { metrics });
      const admin = await metrics.serve({ isAlive: () => true });
      runtime.log.info({ url: `${url}/webhooks`, metrics: `${admin.url}/metrics` }, "the receiver listens");
      const signal = await stopped;
      runtime.log.info({ signal }, "the receiver stops");
    };
    await context.withRuntime("receiver", run, { statementSilenceLimitMs });
  });
}
