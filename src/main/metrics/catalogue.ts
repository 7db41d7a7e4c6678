import { rejectionReasons } from "../../receiver/counters.ts";
import type { Metric } from "../../platform/metrics/registry.ts";

/** The processes that serve metrics. `start` serves what each of the others does. */
export const processNames = ["receiver", "worker", "dashboard", "handlers", "start"] as const;
export type ProcessName = (typeof processNames)[number];

/** A metric of this program, with what people ask about it. */
export interface CatalogueEntry extends Metric {
  /** Besides `start`. */
  servedBy: readonly Exclude<ProcessName, "start">[];
  /** Alerts in deploy/prometheus/tallyhook.rules.yml that use it. */
  alerts: readonly string[];
}

const [every, worker, receiver] = [
  ["receiver", "worker", "dashboard", "handlers"],
  ["worker"],
  ["receiver"],
] as const;

/** Counting ends there, so that a scrape costs the same in a storm. */
export const countedTo = 10_000;
/** Of handlers, destinations, consumers and channels: the first by name. */
export const namesAtMost = 100;
/** ISO 4217, besides `other` and `unknown`. */
const currencies = { atMost: 200 };
const names = { atMost: namesAtMost };

/**
 * All metrics but those that prom-client takes of Node and the process. `tallyhook metrics` prints this table, and tests
 * compare docs/metrics.md, the rules and the panels with it.
 */
export const catalogue = {
  buildInfo: {
    name: "tallyhook_build_info",
    type: "gauge",
    unit: null,
    help: "Always 1; its labels say which version runs where.",
    labels: { version: { atMost: 1 }, process: { atMost: 1 }, node: { atMost: 1 } },
    servedBy: every,
    alerts: ["TallyhookVersionsDiffer"],
  },
  poolConnections: {
    name: "db_client_connection_usage",
    type: "gauge",
    unit: null,
    help: "Connections of a pool, by state.",
    labels: {
      db_client_connection_pool_name: { atMost: 6 },
      db_client_connection_state: ["idle", "used"],
    },
    servedBy: every,
    alerts: [],
  },
  poolMax: {
    name: "db_client_connection_max",
    type: "gauge",
    unit: null,
    help: "Connections that a pool opens at most.",
    labels: { db_client_connection_pool_name: { atMost: 6 } },
    servedBy: every,
    alerts: [],
  },
  poolWaiting: {
    name: "db_client_connection_pending_requests",
    type: "gauge",
    unit: null,
    help: "Statements that wait for a connection of a pool.",
    labels: { db_client_connection_pool_name: { atMost: 6 } },
    servedBy: every,
    alerts: ["TallyhookPoolExhausted"],
  },
  requestDuration: {
    name: "http_server_request_duration_seconds",
    type: "histogram",
    unit: "seconds",
    help: "From a request's headers to the end of its answer's making; of the receiver, webhooks alone.",
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
  receiverRequests: {
    name: "tallyhook_receiver_requests_total",
    type: "counter",
    unit: null,
    help: "Requests to the public port by outcome, and for those that were refused by reason.",
    labels: {
      outcome: ["accepted", "duplicate", "rejected", "unavailable", "failed"],
      reason: ["none", ...rejectionReasons],
    },
    servedBy: receiver,
    alerts: ["TallyhookUnavailable", "TallyhookSignatureFailures"],
  },
  requestsInFlight: {
    name: "tallyhook_receiver_requests_in_flight",
    type: "gauge",
    unit: null,
    help: "Webhook requests that have no answer yet.",
    labels: {},
    servedBy: receiver,
    alerts: [],
  },
  connectionsRefused: {
    name: "tallyhook_receiver_connections_refused_total",
    type: "counter",
    unit: null,
    help: "Connections that were closed unanswered, past WEBHOOK_MAX_CONNECTIONS.",
    labels: {},
    servedBy: receiver,
    alerts: [],
  },
  applyLag: {
    name: "tallyhook_apply_lag_seconds",
    type: "histogram",
    unit: "seconds",
    help: "From the receipt of an event to the commit that applied it for the first time.",
    labels: {},
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600],
    servedBy: worker,
    alerts: ["TallyhookApplySlow"],
  },
  workerAlive: {
    name: "tallyhook_worker_alive",
    type: "gauge",
    unit: null,
    help: "1 while all loops of the worker make progress, as /healthz says.",
    labels: {},
    servedBy: worker,
    alerts: ["TallyhookWorkerStalled", "TallyhookNotProved"],
  },
  receiversReady: {
    name: "tallyhook_receivers_ready",
    type: "gauge",
    unit: null,
    help: "Receivers that run and can store events, by their heartbeats; absent where none was ever heard of.",
    labels: {},
    servedBy: worker,
    alerts: [],
  },
  lastAnswerAge: {
    name: "tallyhook_receiver_last_answer_age_seconds",
    type: "gauge",
    unit: "seconds",
    help: "Age of the last answer to a webhook, whatever it was.",
    labels: {},
    servedBy: worker,
    alerts: [],
  },
  lastWebhookAge: {
    name: "tallyhook_inbox_last_webhook_age_seconds",
    type: "gauge",
    unit: "seconds",
    help: "Age of the newest event of the inbox.",
    labels: {},
    servedBy: worker,
    alerts: [],
  },
  backupAge: {
    name: "tallyhook_backup_age_seconds",
    type: "gauge",
    unit: "seconds",
    help: "Time since the last verified backup, or since the first was begun; absent where none ever was.",
    labels: {},
    servedBy: worker,
    alerts: [],
  },
  readSuccess: {
    name: "tallyhook_database_read_success",
    type: "gauge",
    unit: null,
    help: "1 where the last reading of these gauges succeeded; at 0 they are absent.",
    labels: {
      part: [
        "inbox",
        "receivers",
        "backup",
        "proof",
        "findings",
        "dunning",
        "alerts",
        "queue",
        "handlers",
        "hosts",
        "feed",
      ],
    },
    servedBy: worker,
    alerts: ["TallyhookDatabaseUnreadable", "TallyhookNotProved"],
  },
  inboxEvents: {
    name: "tallyhook_inbox_events",
    type: "gauge",
    unit: null,
    help: `Events that are not applied, by state; counted up to ${countedTo.toLocaleString("en")}.`,
    labels: { state: ["received", "failed", "dead"] },
    servedBy: worker,
    alerts: ["TallyhookEventsDead", "TallyhookEventsFailing"],
  },
  oldestUnapplied: {
    name: "tallyhook_inbox_oldest_unapplied_age_seconds",
    type: "gauge",
    unit: "seconds",
    help: "Age of the oldest event that nobody has tried to apply; 0 where none waits.",
    labels: {},
    servedBy: worker,
    alerts: ["TallyhookNotApplied"],
  },
  provedUntil: {
    name: "tallyhook_reconcile_proved_until_timestamp_seconds",
    type: "gauge",
    unit: "seconds",
    help: "Everything in this list that was created before was proved equal; absent where nothing is proved.",
    labels: { list: ["order", "transaction", "subscription", "customer"] },
    servedBy: worker,
    alerts: ["TallyhookNotProved"],
  },
  findingsOpen: {
    name: "tallyhook_findings_open",
    type: "gauge",
    unit: null,
    help: "Findings that are neither healed nor acknowledged, by class.",
    labels: { class: { atMost: 20 } },
    servedBy: worker,
    alerts: ["TallyhookFindingsOpen"],
  },
  findingsAtRisk: {
    name: "tallyhook_findings_at_risk_minor",
    type: "gauge",
    unit: "minor units",
    help: "Amount at risk of the same findings, in minor units; without a known currency: other, unknown.",
    labels: { currency: currencies },
    servedBy: worker,
    alerts: [],
  },
  dunningAtRisk: {
    name: "tallyhook_dunning_at_risk_minor",
    type: "gauge",
    unit: "minor units",
    help: "Total of the renewals that were declined and are neither paid nor given up, in minor units.",
    labels: { currency: currencies },
    servedBy: worker,
    alerts: ["TallyhookDunningAtRisk"],
  },
  alertsOpen: {
    name: "tallyhook_alerts_open",
    type: "gauge",
    unit: null,
    help: `Alerts of Tallyhook itself that are not resolved, by severity; counted up to ${countedTo.toLocaleString("en")}.`,
    labels: { severity: ["info", "warning", "error", "critical"] },
    servedBy: worker,
    alerts: [],
  },
  outboxAge: {
    name: "tallyhook_alert_outbox_oldest_age_seconds",
    type: "gauge",
    unit: "seconds",
    help: "How long the oldest message that is due on a channel has been due; 0 where none is.",
    labels: { channel: names },
    servedBy: worker,
    alerts: ["TallyhookAlertsNotSent"],
  },
  queueJobs: {
    name: "tallyhook_queue_jobs",
    type: "gauge",
    unit: null,
    help: "Jobs of the queue, which only wakes workers, by state.",
    labels: {
      queue: ["apply"],
      state: ["waiting", "active", "delayed", "failed"],
    },
    servedBy: worker,
    alerts: [],
  },
  queueAge: {
    name: "tallyhook_queue_oldest_waiting_age_seconds",
    type: "gauge",
    unit: "seconds",
    help: "Age of the job that has waited longest; 0 where none waits.",
    labels: { queue: ["apply"] },
    servedBy: worker,
    alerts: ["TallyhookQueueStuck"],
  },
  handlerDead: {
    name: "tallyhook_handler_dead_changes",
    type: "gauge",
    unit: null,
    help: `Changes that failed at their last attempt, of a handler or a destination; counted up to ${countedTo.toLocaleString("en")}.`,
    labels: { handler: names },
    servedBy: worker,
    alerts: ["TallyhookHandlerDead"],
  },
  handlerAge: {
    name: "tallyhook_handler_unread_age_seconds",
    type: "gauge",
    unit: "seconds",
    help: "Age of the oldest change that a handler or a destination has not looked at; 0 where there is none.",
    labels: { handler: names },
    servedBy: worker,
    alerts: ["TallyhookHandlerBehind"],
  },
  handlerPostponed: {
    name: "tallyhook_handler_postponed_total",
    type: "counter",
    unit: null,
    help: "How often a handler has asked for another time by RetryLater, which counts as no attempt.",
    labels: { handler: names },
    servedBy: worker,
    alerts: [],
  },
  handlerFilesDown: {
    name: "tallyhook_handler_files_down",
    type: "gauge",
    unit: null,
    help: "Files of handlers that no process runs, or that end their process again and again.",
    labels: {},
    servedBy: worker,
    alerts: [],
  },
  handlerPaused: {
    name: "tallyhook_handler_paused",
    type: "gauge",
    unit: null,
    help: "1 where a handler or a destination is paused.",
    labels: { handler: names },
    servedBy: worker,
    alerts: [],
  },
  consumerAge: {
    name: "tallyhook_feed_consumer_unread_age_seconds",
    type: "gauge",
    unit: "seconds",
    help: "Age of the oldest change that a consumer of the feed has not read; 0 where there is none.",
    labels: { consumer: names },
    servedBy: worker,
    alerts: ["TallyhookFeedConsumerBehind"],
  },
} as const satisfies Readonly<Record<string, CatalogueEntry>>;
