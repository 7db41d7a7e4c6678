import { rejectionReasons } from "../../core/receiver/counters.ts";
import { type CatalogueEntry, metric } from "./metric.ts";

const [every, receiver] = [["receiver", "worker", "dashboard", "handlers"], ["receiver"]] as const;

/** Metrics of the processes themselves: they need no database. */
export const processMetrics = {
  buildInfo: metric("tallyhook_build_info", "Always 1; its labels say which version runs where.", {
    labels: { version: { atMost: 1 }, process: { atMost: 1 }, node: { atMost: 1 } },
    servedBy: every,
    alerts: ["TallyhookVersionsDiffer"],
  }),
  poolConnections: metric("db_client_connection_usage", "Connections of a pool, by state.", {
    labels: {
      db_client_connection_pool_name: { atMost: 6 },
      db_client_connection_state: ["idle", "used"],
    },
    servedBy: every,
  }),
  poolMax: metric("db_client_connection_max", "Connections that a pool opens at most.", {
    labels: { db_client_connection_pool_name: { atMost: 6 } },
    servedBy: every,
  }),
  poolWaiting: metric("db_client_connection_pending_requests", "Statements that wait for a connection of a pool.", {
    labels: { db_client_connection_pool_name: { atMost: 6 } },
    servedBy: every,
    alerts: ["TallyhookPoolExhausted"],
  }),
  requestDuration: metric(
    "http_server_request_duration_seconds",
    "Time from a request's headers until its answer is ready; for the receiver, webhooks only.",
    {
      labels: {
        http_request_method: ["GET", "HEAD", "POST", "_OTHER"],
        // Of the dashboard its section, such as /events; empty where no page is meant.
        http_route: { atMost: 25 },
        http_response_status_code: { atMost: 12 },
      },
      // OpenTelemetry's list for this metric.
      buckets: [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10],
      servedBy: ["receiver", "dashboard"],
      alerts: ["TallyhookReceiverSlow"],
    },
  ),
  receiverRequests: metric(
    "tallyhook_receiver_requests_total",
    "Requests to the public port by outcome, and for those that were refused by reason.",
    {
      labels: {
        outcome: ["accepted", "duplicate", "rejected", "unavailable", "failed"],
        reason: ["none", ...rejectionReasons],
      },
      servedBy: receiver,
      alerts: ["TallyhookUnavailable", "TallyhookSignatureFailures"],
    },
  ),
  requestsInFlight: metric("tallyhook_receiver_requests_in_flight", "Webhook requests that have no answer yet.", {
    servedBy: receiver,
  }),
  connectionsRefused: metric(
    "tallyhook_receiver_connections_refused_total",
    "Connections that were closed unanswered, past WEBHOOK_MAX_CONNECTIONS.",
    { servedBy: receiver },
  ),
  applyLag: metric(
    "tallyhook_apply_lag_seconds",
    "From the receipt of an event to the commit that applied it for the first time.",
    {
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600],
      alerts: ["TallyhookApplySlow"],
    },
  ),
  workerAlive: metric("tallyhook_worker_alive", "1 while all loops of the worker make progress, as /healthz says.", {
    alerts: ["TallyhookWorkerStalled", "TallyhookNotProved"],
  }),
} satisfies Readonly<Record<string, CatalogueEntry>>;
