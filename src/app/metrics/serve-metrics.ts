import { type AdminServer, startAdminServer } from "../../platform/http/admin-server.ts";
import { type Metrics, type Sample, createMetrics } from "../../platform/metrics/registry.ts";
import type { PoolUse } from "../../platform/postgres/pool.ts";
import type { ReceiverCounters } from "../../core/receiver/counters.ts";
import type { Runtime } from "../runtime.ts";
import type { ProcessName } from "./metric.ts";
import { processMetrics } from "./process-metrics.ts";

/** The metrics of a process, created before the rest of it. */
export interface ProcessMetrics {
  /** The metrics of a process that receives. */
  addReceiver(counters: Readonly<ReceiverCounters>): void;
  /** Used by processes that answer requests: feeds `http_server_request_duration_seconds`. */
  observeRequest(request: AnsweredRequest): void;
  /** Used by processes that apply events. */
  observeApplied(lagsMs: readonly number[]): void;
  addWorker(worker: { isAlive(): boolean }): void;
  /** Adds the metrics that are read from database and queue. */
  addDatabase(): Promise<void>;
  /** Answers `/healthz` and `/metrics` until the runtime ends. Throws `ConfigurationError` when it cannot listen. */
  serve(part: { isAlive(): boolean }): Promise<AdminServer>;
}

export interface AnsweredRequest {
  method: string;
  /** Empty where there is no route. */
  route: string;
  status: number;
  seconds: number;
}

/** Default ports while ADMIN_PORT is not set, so that all processes can run on one machine. */
export const adminPorts: Readonly<Record<ProcessName, number>> = {
  worker: 3001,
  start: 3001,
  receiver: 3003,
  dashboard: 3004,
  handlers: 3005,
};

/** `version`: the program's. */
export function createProcessMetrics(
  runtime: Runtime,
  { name, version }: { name: ProcessName; version: string },
): ProcessMetrics {
  const { config, secrets, log } = runtime;
  const metrics = createMetrics({ log });
  addProcess(metrics, runtime, { version, process: name, node: process.versions.node });
  // Histograms are made when something is observed: a worker has no requests.
  const requests = lazily(() => metrics.histogram(processMetrics.requestDuration));
  const lags = lazily(() => metrics.histogram(processMetrics.applyLag));
  return {
    addReceiver(counters) {
      requests();
      addReceiver(metrics, counters);
    },
    observeRequest({ method, route, status, seconds }) {
      requests().observe(seconds, knownMethod(method), route, String(status));
    },
    observeApplied(lagsMs) {
      for (const lagMs of lagsMs) lags().observe(lagMs / 1_000);
    },
    addWorker(worker) {
      lags();
      metrics.read(processMetrics.workerAlive, () => [{ value: worker.isAlive() ? 1 : 0 }]);
    },
    async addDatabase() {
      const { addDatabaseMetrics, openMetricsDatabase } = await import("./database-metrics.ts");
      await addDatabaseMetrics(metrics, runtime, await openMetricsDatabase(runtime));
    },
    async serve({ isAlive }) {
      const server = await startAdminServer(
        { log, isAlive, metrics, metricsToken: secrets.metricsToken },
        { host: config.admin.host, port: config.admin.port ?? adminPorts[name] },
      );
      runtime.onClose(() => server.close());
      return server;
    },
  };
}

const lazily = <T>(make: () => T): (() => T) => {
  let made: T | undefined;
  return () => (made ??= make());
};

const methods: readonly string[] = processMetrics.requestDuration.labels.http_request_method;
const knownMethod = (method: string): string => (methods.includes(method) ? method : "_OTHER");

function addProcess(
  metrics: Metrics,
  runtime: Runtime,
  labels: Readonly<Record<"version" | "process" | "node", string>>,
): void {
  metrics.read(processMetrics.buildInfo, () => [{ labels, value: 1 }]);
  const ofPools = (samples: (pool: string, use: PoolUse) => Sample[]) => (): Sample[] =>
    runtime.poolUse().flatMap(({ name: pool, use }) => samples(pool, use));
  const poolLabel = (pool: string) => ({ db_client_connection_pool_name: pool });
  metrics.read(
    processMetrics.poolConnections,
    ofPools((pool, { used, idle }) => [
      { labels: { ...poolLabel(pool), db_client_connection_state: "used" }, value: used },
      { labels: { ...poolLabel(pool), db_client_connection_state: "idle" }, value: idle },
    ]),
  );
  metrics.read(
    processMetrics.poolMax,
    ofPools((pool, { most }) => [{ labels: poolLabel(pool), value: most }]),
  );
  metrics.read(
    processMetrics.poolWaiting,
    ofPools((pool, { waiting }) => [{ labels: poolLabel(pool), value: waiting }]),
  );
}

function addReceiver(metrics: Metrics, counters: Readonly<ReceiverCounters>): void {
  const { receiverRequests, requestsInFlight, connectionsRefused } = processMetrics;
  metrics.read(receiverRequests, () => [
    ...(["accepted", "duplicate", "unavailable", "failed"] as const).map((outcome) => ({
      labels: { outcome, reason: "none" },
      value: counters[outcome],
    })),
    ...Object.entries(counters.rejected).map(([reason, value]) => ({
      labels: { outcome: "rejected", reason },
      value,
    })),
  ]);
  metrics.read(requestsInFlight, () => [{ value: counters.inFlight }]);
  metrics.read(connectionsRefused, () => [{ value: counters.connectionsRefused }]);
}
