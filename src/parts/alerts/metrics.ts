import { type MetricReading, countedTo, metric, names, namesAtMost, reading } from "../../app/metrics/metric.ts";

const severities = ["info", "warning", "error", "critical"] as const;

export const alertReadings: readonly MetricReading[] = [
  reading(
    "alerts",
    async ({ db, config }) => {
      const { alertSettings } = await import("./run-alerts.ts");
      const { countUnresolved, readOutboxAges } = await import("./outbox/outbox-ages.ts");
      const channels = Object.keys(alertSettings({ config }).channels).sort().slice(0, namesAtMost);
      const [unresolved, outbox] = await Promise.all([
        countUnresolved(db, { most: countedTo }),
        readOutboxAges(db, channels),
      ]);
      return { unresolved, outbox };
    },
    [
      [
        metric(
          "tallyhook_alerts_open",
          `Alerts of Tallyhook itself that are not resolved, by severity; counted up to ${countedTo.toLocaleString("en")}.`,
          { labels: { severity: severities } },
        ),
        ({ unresolved }) =>
          severities.map((severity) => ({
            labels: { severity },
            value: unresolved.find((each) => each.severity === severity)?.n ?? 0,
          })),
      ],
      [
        metric(
          "tallyhook_alert_outbox_oldest_age_seconds",
          "How long the oldest message that is due on a channel has been due; 0 where none is.",
          { labels: { channel: names }, alerts: ["TallyhookAlertsNotSent"] },
        ),
        ({ outbox }) => outbox.map(({ channel, ageSeconds: value }) => ({ labels: { channel }, value })),
      ],
    ],
  ),
];
