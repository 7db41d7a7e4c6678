import { rejectionReasons } from "../../core/receiver/counters.ts";
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

const [every, receiver] = [["receiver", "worker", "dashboard", "handlers"], ["receiver"]] as const;

/** Counting ends there, so that a scrape costs the same in a storm. */
export const countedTo = 10_000;
/** Of handlers, destinations, consumers and channels: the first by name. */
export const namesAtMost = 100;
/** ISO 4217, besides `other` and `unknown`. */
const currencies = { atMost: 200 };
const names = { atMost: namesAtMost };

type Details<L> = Partial<Pick<CatalogueEntry, "servedBy" | "alerts" | "buckets">> & { labels?: L };

/** A metric of a worker, unless another process serves it. Its name says its type and its unit. */
function metric<const L extends CatalogueEntry["labels"] = Record<never, never>>(
  name: string,
  help: string,
  { labels = {} as L, servedBy = ["worker"], alerts = [], buckets }: Details<L> = {},
): CatalogueEntry & { labels: L } {
  const plain = name.endsWith("_total") ? "counter" : "gauge";
  const unit = name.endsWith("_minor") ? "minor units" : null;
  return {
    name,
    type: buckets === undefined ? plain : "histogram",
    unit: name.endsWith("_seconds") ? "seconds" : unit,
    help,
    labels,
    servedBy,
    alerts,
    ...(buckets === undefined ? {} : { buckets }),
  };
}

/**
 * All metrics but those that prom-client takes of Node and the process. `tallyhook metrics` prints this table, and tests
 * compare docs/metrics.md, the rules and the panels with it.
 */
export const catalogue = {
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
  receiversReady: metric(
    "tallyhook_receivers_ready",
    "Receivers that run and can store events, by their heartbeats; absent where none ever ran.",
  ),
  lastAnswerAge: metric(
    "tallyhook_receiver_last_answer_age_seconds",
    "Age of the last answer to a webhook, whatever it was.",
  ),
  lastWebhookAge: metric("tallyhook_inbox_last_webhook_age_seconds", "Age of the newest event of the inbox."),
  backupAge: metric(
    "tallyhook_backup_age_seconds",
    "Time since the last verified backup, or since the first was begun; absent where none was ever begun.",
  ),
  readSuccess: metric(
    "tallyhook_database_read_success",
    "1 where the last reading of these gauges succeeded; at 0 they are absent.",
    {
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
      alerts: ["TallyhookDatabaseUnreadable", "TallyhookNotProved"],
    },
  ),
  inboxEvents: metric(
    "tallyhook_inbox_events",
    `Events that are not applied, by state; counted up to ${countedTo.toLocaleString("en")}.`,
    {
      labels: { state: ["received", "failed", "dead"] },
      alerts: ["TallyhookEventsDead", "TallyhookEventsFailing"],
    },
  ),
  oldestUnapplied: metric(
    "tallyhook_inbox_oldest_unapplied_age_seconds",
    "Age of the oldest event that was never tried; 0 where none waits.",
    { alerts: ["TallyhookNotApplied"] },
  ),
  provedUntil: metric(
    "tallyhook_reconcile_proved_until_timestamp_seconds",
    "Everything in this list that was created before was proved equal; absent where nothing is proved.",
    {
      labels: { list: ["order", "transaction", "subscription", "customer"] },
      alerts: ["TallyhookNotProved"],
    },
  ),
  findingsOpen: metric("tallyhook_findings_open", "Findings that are neither healed nor acknowledged, by class.", {
    labels: { class: { atMost: 20 } },
    alerts: ["TallyhookFindingsOpen"],
  }),
  findingsAtRisk: metric(
    "tallyhook_findings_at_risk_minor",
    "Amount at risk of the same findings, in minor units; without a known currency: other, unknown.",
    { labels: { currency: currencies } },
  ),
  dunningAtRisk: metric(
    "tallyhook_dunning_at_risk_minor",
    "Total of the renewals that were declined and are neither paid nor given up, in minor units.",
    { labels: { currency: currencies }, alerts: ["TallyhookDunningAtRisk"] },
  ),
  alertsOpen: metric(
    "tallyhook_alerts_open",
    `Alerts of Tallyhook itself that are not resolved, by severity; counted up to ${countedTo.toLocaleString("en")}.`,
    { labels: { severity: ["info", "warning", "error", "critical"] } },
  ),
  outboxAge: metric(
    "tallyhook_alert_outbox_oldest_age_seconds",
    "How long the oldest message that is due on a channel has been due; 0 where none is.",
    { labels: { channel: names }, alerts: ["TallyhookAlertsNotSent"] },
  ),
  queueJobs: metric("tallyhook_queue_jobs", "Jobs of the queue, which only wakes workers, by state.", {
    labels: {
      queue: ["apply"],
      state: ["waiting", "active", "delayed", "failed"],
    },
  }),
  queueAge: metric(
    "tallyhook_queue_oldest_waiting_age_seconds",
    "Age of the job that has waited longest; 0 where none waits.",
    { labels: { queue: ["apply"] }, alerts: ["TallyhookQueueStuck"] },
  ),
  handlerDead: metric(
    "tallyhook_handler_dead_changes",
    "Changes that failed at their last attempt, of a handler or a destination; counted up to " +
      `${countedTo.toLocaleString("en")}.`,
    { labels: { handler: names }, alerts: ["TallyhookHandlerDead"] },
  ),
  handlerAge: metric(
    "tallyhook_handler_unread_age_seconds",
    "Age of the oldest change that a handler or a destination has not read; 0 where there is none.",
    { labels: { handler: names }, alerts: ["TallyhookHandlerBehind"] },
  ),
  handlerPostponed: metric(
    "tallyhook_handler_postponed_total",
    "How often a handler has postponed a change by RetryLater, which does not count as an attempt.",
    { labels: { handler: names } },
  ),
  handlerFilesDown: metric(
    "tallyhook_handler_files_down",
    "Files of handlers that no process runs, or that end their process again and again.",
  ),
  handlerPaused: metric("tallyhook_handler_paused", "1 where a handler or a destination is paused.", {
    labels: { handler: names },
  }),
  consumerAge: metric(
    "tallyhook_feed_consumer_unread_age_seconds",
    "Age of the oldest change that a consumer of the feed has not read; 0 where there is none.",
    { labels: { consumer: names }, alerts: ["TallyhookFeedConsumerBehind"] },
  ),
} satisfies Readonly<Record<string, CatalogueEntry>>;
