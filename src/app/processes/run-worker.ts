import { watchRoundTrips } from "../../core/queue/round-trips.ts";
import { type RunningWorker, defaultWorkerOptions, startWorker } from "../../core/worker/start-worker.ts";
import type { ScheduledTask } from "../../core/worker/scheduled-tasks.ts";
import type { ProcessMetrics } from "../metrics/serve-metrics.ts";
import { listenerOf, type Runtime, type WorkerRole } from "../runtime.ts";
import type { CompletedEvent } from "../../core/inbox/claim.ts";
import { showChanges } from "./show-changes.ts";
import { accountProblem } from "../same-account.ts";

/**
 * Starts a worker that ends with the runtime. `metrics`: those of the process, which come to tell of the worker as well.
 * The database must be migrated.
 */
export async function runWorker(
  runtime: Runtime,
  { metrics, ...role }: WorkerRole & { metrics?: ProcessMetrics } = {},
): Promise<RunningWorker> {
  const { config, live, log, random, wallClock: clock, serviceClock } = runtime;
  const parts = runtime.parts.filter(({ name }) => role.without?.includes(name) !== true);
  const [db, client] = [await runtime.db(), runtime.serviceClient(role.service)];
  const queue = await runtime.queue();
  const tasks: Record<string, ScheduledTask> = {};
  for (const part of parts) Object.assign(tasks, await part.tasks?.(runtime, role));
  const shown = live === null ? null : await showChanges({ db, log, live });
  if (shown !== null) runtime.onClose(() => shown.close());
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
      listener: await listenerOf(runtime),
      isClockMovable: config.service.kind === "sandbox",
      missingGraceMs: role.missingGraceMs ?? config.reconcile.graceSeconds * 1_000,
      ...(metrics === undefined ? {} : { onApplied: metrics.observeApplied }),
      ...(live === null
        ? {}
        : {
            onEvents(events: readonly CompletedEvent[]) {
              live.events(events);
              shown?.committed();
            },
          }),
    },
    { ...defaultWorkerOptions, tasks },
  );
  runtime.onClose(() => worker.close());
  // A queue without producers would go unnoticed.
  const roundTrips = watchRoundTrips({ queue, log });
  runtime.onClose(() => roundTrips.close());
  metrics?.addWorker(worker);
  await metrics?.addDatabase();
  for (const part of parts) await part.work?.(runtime, role);
  return worker;
}
