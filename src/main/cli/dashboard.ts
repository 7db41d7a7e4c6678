import type { Command } from "commander";
import { migratedDatabase } from "../../app/schema.ts";
import type { CliContext } from "../../app/cli/context.ts";
import { untilSignal } from "../../app/cli/until-signal.ts";

export function registerPages(program: Command, context: CliContext): void {
  program
    .command("dashboard")
    .option("--sign-in", "print a link that signs you in once, with every role")
    .action(async ({ signIn }: { signIn?: boolean }) => {
      await context.withRuntime("dashboard", async (runtime) => {
        const stopped = untilSignal();
        const { createProcessMetrics } = await import("../../app/metrics/serve-metrics.ts");
        const { ownersLink, runDashboard } = await import("../run-dashboard.ts");
        await migratedDatabase(runtime);
        const metrics = createProcessMetrics(runtime, {
          name: "dashboard",
          version: context.version,
        });
        const { url } = await runDashboard(runtime, { onAnswered: metrics.observeRequest });
        await metrics.serve({ isAlive: () => true });
        runtime.log.info({ url: runtime.config.dashboard.publicUrl ?? url }, "the dashboard runs");
        if (signIn === true) {
          context.stdout.write(`${await ownersLink(runtime, runtime.config.dashboard.publicUrl ?? url)}\n`);
        }
        const signal = await stopped;
        runtime.log.info({ signal }, "the dashboard stops");
      });
    });
}
