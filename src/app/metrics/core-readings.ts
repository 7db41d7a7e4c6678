import { type MetricReading, ageOf, ageSeconds, byCurrency, countedTo, currencies, metric, reading } from "./metric.ts";

const queueStates = ["waiting", "active", "delayed", "failed"] as const;

/** What core keeps: inbox, receivers, backups, renewals, the queue. */
export const coreReadings: readonly MetricReading[] = [
  reading("inbox", async ({ db }) => (await import("../../core/inbox/backlog.ts")).readBacklog(db, { countedTo }), [
    [
      metric(
        "tallyhook_inbox_events",
        `Events that are not applied, by state; counted up to ${countedTo.toLocaleString("en")}.`,
        {
          labels: { state: ["received", "failed", "dead"] },
          alerts: ["TallyhookEventsDead", "TallyhookEventsFailing"],
        },
      ),
      ({ waiting, failed, dead }) => [
        { labels: { state: "received" }, value: waiting.n },
        { labels: { state: "failed" }, value: failed.n },
        { labels: { state: "dead" }, value: dead.n },
      ],
    ],
    [
      metric(
        "tallyhook_inbox_oldest_unapplied_age_seconds",
        "Age of the oldest event that was never tried; 0 where none waits.",
        { alerts: ["TallyhookNotApplied"] },
      ),
      ({ waitingSince }, { clock }) => [{ value: ageSeconds(clock.now(), waitingSince) }],
    ],
  ]),
  reading("receivers", async ({ db }) => (await import("../../core/receiver/heartbeats.ts")).readReceivers(db), [
    [
      metric(
        "tallyhook_receivers_ready",
        "Receivers that run and can store events, by their heartbeats; absent where none ever ran.",
      ),
      ({ presence }) => (presence === null ? [] : [{ value: presence.ready }]),
    ],
    [
      metric("tallyhook_receiver_last_answer_age_seconds", "Age of the last answer to a webhook, whatever it was."),
      ({ lastAnswerAt, now }) => ageOf(lastAnswerAt, now),
    ],
    [
      metric("tallyhook_inbox_last_webhook_age_seconds", "Age of the newest event of the inbox."),
      ({ lastWebhookAt, now }) => ageOf(lastWebhookAt, now),
    ],
  ]),
  reading(
    "backup",
    async ({ db }) => {
      const { readBackups, unsavedMs } = await import("../../core/mirror/backups.ts");
      const backups = await readBackups(db);
      return backups === null ? null : unsavedMs(backups);
    },
    [
      [
        metric(
          "tallyhook_backup_age_seconds",
          "Time since the last verified backup, or since the first was begun; absent where none was ever begun.",
        ),
        (unsavedMs) => (unsavedMs === null ? [] : [{ value: unsavedMs / 1_000 }]),
      ],
    ],
  ),
  reading(
    "dunning",
    async ({ db, serviceClock }) => {
      const { sumUnpaidRenewals } = await import("../../core/mirror/dunning/renewals.ts");
      return sumUnpaidRenewals(db, { now: serviceClock.now() });
    },
    [
      [
        metric(
          "tallyhook_dunning_at_risk_minor",
          "Total of the renewals that were declined and are neither paid nor given up, in minor units.",
          { labels: { currency: currencies }, alerts: ["TallyhookDunningAtRisk"] },
        ),
        (unpaid) => byCurrency(unpaid.map(({ currency, totalMinor }) => [currency, totalMinor])),
      ],
    ],
  ),
  reading("queue", ({ queue }) => queue.depth(), [
    [
      metric("tallyhook_queue_jobs", "Jobs of the queue, which only wakes workers, by state.", {
        labels: {
          queue: ["apply"],
          state: queueStates,
        },
      }),
      ({ queue: name, ...counts }) =>
        queueStates.map((state) => ({ labels: { queue: name, state }, value: counts[state] })),
    ],
    [
      metric(
        "tallyhook_queue_oldest_waiting_age_seconds",
        "Age of the job that has waited longest; 0 where none waits.",
        { labels: { queue: ["apply"] }, alerts: ["TallyhookQueueStuck"] },
      ),
      ({ queue: name, oldestWaitingAt }, { clock }) => [
        { labels: { queue: name }, value: ageSeconds(clock.now(), oldestWaitingAt) },
      ],
    ],
  ]),
];
