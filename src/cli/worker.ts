import type { Command } from "commander";
import { startHealthServer } from "../platform/health-server.ts";
import { assertMigrated } from "../runtime.ts";
import type { Runtime } from "../runtime.ts";
import { defaultWorkerOptions, startWorker } from "../worker/start-worker.ts";
import type { RunningWorker } from "../worker/start-worker.ts";
import type { CliContext } from "./context.ts";
import { nightlyTasks } from "./nightly-tasks.ts";
import { reportMailTasks } from "./report-mail-tasks.ts";
import { untilSignal } from "./until-signal.ts";

export function registerWorker(program: Command, context: CliContext): void {
  program
    .command("worker")
    .description("apply stored events to the mirror, until a signal")
    .action(async () => {
      await context.withRuntime("worker", async (runtime) => {
        const stopped = untilSignal();
        await assertMigrated(await runtime.db());
        const worker = await runWorker(runtime);
        const health = await startHealthServer(worker, runtime.config.admin);
        runtime.onClose(() => health.close());
        runtime.log.info({ health: `${health.url}/healthz` }, "the worker runs");
        const signal = await stopped;
        runtime.log.info({ signal }, "the worker stops");
      });
    });
}

export interface WorkerRole {
  /** The service to read from; the configured one when left out. */
  service?: { baseUrl: string; apiKey: string };
  /** How far apart two answers "unknown" must be to mean that a customer was deleted. */
  missingGraceMs?: number;
  /** False: no nightly reconciliation, and no mails with reports. */
  isNightly?: boolean;
}

/** Starts a worker that ends with the runtime. The database must be migrated. */
export async function runWorker(runtime: Runtime, role: WorkerRole = {}): Promise<RunningWorker> {
  const { config, log, random, wallClock } = runtime;
  const worker = startWorker(
    {
      db: await runtime.db(),
      queue: await runtime.queue(),
      client: runtime.serviceClient(role.service),
      log,
      random,
      clock: wallClock,
      places: config.eventPlaces,
      missingGraceMs: role.missingGraceMs ?? config.reconcile.graceSeconds * 1_000,
    },
    {
      ...defaultWorkerOptions,
      tasks:
        role.isNightly === false
          ? {}
          : { ...(await nightlyTasks(runtime, role.service)), ...(await reportMailTasks(runtime)) },
    },
  );
  runtime.onClose(() => worker.close());
  return worker;
}
