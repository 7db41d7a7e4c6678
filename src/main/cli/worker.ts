import type { Command } from "commander";
import { accountProblem } from "../../parts/reconcile/same-account.ts";
import { watchRoundTrips } from "../../core/queue/round-trips.ts";
import { type RunningWorker, defaultWorkerOptions, startWorker } from "../../core/worker/start-worker.ts";
import { type ProcessMetrics, createProcessMetrics } from "../../app/metrics/serve-metrics.ts";
import { takeOrders } from "../../parts/reconcile/ordered-runs.ts";
import {
  createListener,
  nightlyTasks,
  reconcileDeps,
  reconcileSettings,
} from "../../parts/reconcile/reconciliation.ts";
import { optionalRooms } from "../optional-rooms.ts";
import type { AlertWatch } from "../rooms/room-interfaces.ts";
import { retentionTasks } from "../retention.ts";
import { rereadMisdated } from "../../core/worker/reread-misdated.ts";
import type { Runtime } from "../../app/runtime.ts";
import { migratedDatabase, reportsStandbyOf } from "../schema.ts";
import { runTracing } from "../../app/tracing.ts";
import type { CliContext } from "../../app/cli/context.ts";
import { untilSignal } from "../../app/cli/until-signal.ts";

export function registerWorker(program: Command, context: CliContext): void {
  program
    .command("worker")
    .description("apply stored events, run the schedules and send alerts, until a signal")
    .action(async () => {
      const run = async (runtime: Runtime): Promise<void> => {
        const stopped = untilSignal();
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

export interface WorkerRole {
  /** The service to read from. Default: the configured one. */
  service?: { baseUrl: string; apiKey: string };
  /** The least time between two "not found" answers that together mean that a customer was deleted. */
  missingGraceMs?: number;
  /** False: no nightly run, none that people order, and no mails with reports. */
  isNightly?: boolean;
  /** False: alerts are written and stay in the outbox, and nothing detects absences. */
  sendsAlerts?: boolean;
  /** How alerts watch for absences and the like. */
  alertWatch?: AlertWatch;
  /** False: no handler of the merchant runs. */
  runsHandlers?: boolean;
  /** False: nothing is forwarded. */
  forwards?: boolean;
  /** Those of the process, which come to tell of the worker as well. */
  metrics?: ProcessMetrics;
}

/** Starts a worker that ends with the runtime. The database must be migrated. */
export async function runWorker(runtime: Runtime, role: WorkerRole = {}): Promise<RunningWorker> {
  const { config, log, random, wallClock: clock, serviceClock } = runtime;
  const alerts = role.sendsAlerts === false ? undefined : optionalRooms.alerts;
  await alerts?.send(runtime);
  const { metrics } = role;
  const [db, client] = [await runtime.db(), runtime.serviceClient(role.service)];
  const queue = await runtime.queue();
  const worker = startWorker(
    {
      db,
      queue,
      client,
      foreignAccount: () => accountProblem({ db, client }),
      log,
      random,
      places: config.eventPlaces,
      clock,
      serviceClock,
      listener: await createListener(runtime),
      isClockMovable: config.service.kind === "sandbox",
      missingGraceMs: role.missingGraceMs ?? config.reconcile.graceSeconds * 1_000,
      ...(metrics === undefined ? {} : { onApplied: metrics.observeApplied }),
    },
    {
      ...defaultWorkerOptions,
      tasks: {
        ...(role.isNightly === false
          ? {}
          : {
              ...(await nightlyTasks(runtime, role.service)),
              ...(await optionalRooms.reports?.tasks(runtime, reportsStandbyOf(runtime))),
            }),
        ...(await alerts?.tasks(runtime)),
        ...(await retentionTasks(runtime)),
        "reread-misdated": rereadMisdated(db),
      },
    },
  );
  runtime.onClose(() => worker.close());
  // A queue that nobody adds to would not be found out.
  const roundTrips = watchRoundTrips({ queue, log });
  runtime.onClose(() => roundTrips.close());
  metrics?.addWorker(worker);
  await metrics?.addDatabase();
  if (role.isNightly !== false) {
    const orders = takeOrders(await reconcileDeps(runtime, role.service), reconcileSettings(runtime));
    runtime.onClose(() => orders.close());
  }
  const ofRooms = {
    ...optionalRooms.reports?.questions,
    ...optionalRooms.handlers?.questions,
    ...optionalRooms.forward?.questions,
  };
  await alerts?.watch(runtime, ofRooms, role.alertWatch);
  if (role.runsHandlers !== false) await optionalRooms.handlers?.run(runtime, role.service);
  if (role.forwards !== false) await optionalRooms.forward?.run(runtime);
  return worker;
}
