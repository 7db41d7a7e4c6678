import type { Knex } from "knex";
import type { AlertContext } from "../../src/parts/alerts/alert-context.ts";
import { alertListener } from "../../src/parts/alerts/run-alerts.ts";
import { type AlertSettings, loadAlertSettings } from "../../src/parts/alerts/settings.ts";
import { wallClock } from "../../src/platform/clock.ts";
import { emptyTables } from "../support/empty-tables.ts";

/** An alert context with the defaults, but for what is given. */
export const testAlertContext = (given: Partial<AlertContext> = {}): AlertContext => ({
  settings: loadAlertSettings(null),
  timeZone: "UTC",
  networkRegion: "global",
  dashboardUrl: null,
  clock: wallClock,
  serviceClock: wallClock,
  ...given,
});

/** What a worker or a run needs, so that what it does becomes alerts in this context. */
export const toldTo = (alertContext: AlertContext) => ({
  listener: alertListener(alertContext),
  clock: alertContext.clock,
  serviceClock: alertContext.serviceClock,
});

/** Settings as a file would give them. */
export const settingsOf = (file: object): AlertSettings => loadAlertSettings("test.jsonc", () => JSON.stringify(file));

export async function emptyAlerts(db: Knex): Promise<void> {
  await emptyTables(
    db,
    [
      "alerts.alerts",
      "alerts.history",
      "alerts.outbox",
      "alerts.digest_items",
      "alerts.seen_values",
      "alerts.marks",
      "alerts.event_hours",
      "alerts.heartbeats",
      "alerts.silences",
      "receiver.answers_by_minute",
      "receiver.heartbeats",
      "mirror.backups",
    ],
    { numbersRestart: true },
  );
}
