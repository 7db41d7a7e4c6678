import type { AlertsRoom } from "./room-interfaces.ts";

/** Everything is loaded on demand: a receiver needs no alerts. */
export const alertsRoom: AlertsRoom = {
  listener: async (runtime) => (await import("../../parts/alerts/run-alerts.ts")).createListener(runtime),
  send: async (runtime) => (await import("../../parts/alerts/run-alerts.ts")).runAlertSender(runtime),
  watch: async (runtime, ofRooms, options) =>
    (await import("../../parts/alerts/run-alerts.ts")).runAlertWatch(runtime, ofRooms, options),
  tasks: async (runtime) => (await import("../../parts/alerts/run-alerts.ts")).alertTasks(runtime),
  dunning: async (runtime) => {
    const { rules } = (await import("../../parts/alerts/run-alerts.ts")).alertSettings(runtime);
    const { lastAttempt, withinHours } = rules.dunning_last_retry;
    return { lastAttempt, withinHours, contactAtAttempt: rules.dunning_renewal.contactAtAttempt };
  },
  presumeSent: async (trx, runtime, ranUntil) => {
    const settings = (await import("../../parts/alerts/run-alerts.ts")).alertSettings(runtime);
    const { timeZone } = runtime.config;
    const { presumeSent } = await import("../../parts/alerts/after-restore.ts");
    return presumeSent(trx, { settings, timeZone }, ranUntil);
  },
  about: async (trx, person) => (await import("../../parts/alerts/redact-messages.ts")).alertsAbout(trx, person),
  redact: async (trx, person) => (await import("../../parts/alerts/redact-messages.ts")).redactMessages(trx, person),
  told: {
    watch: async (trx) => (await import("../../parts/alerts/told.ts")).watchTold(trx),
    at: async (db, at, of) => (await import("../../parts/alerts/told.ts")).toldAt(db, at, of),
  },
  metrics: async (db, runtime, { most, channelsAtMost }) => {
    const { channels } = (await import("../../parts/alerts/run-alerts.ts")).alertSettings(runtime);
    const { countUnresolved, readOutboxAges } = await import("../../parts/alerts/outbox/outbox-ages.ts");
    const names = Object.keys(channels).sort().slice(0, channelsAtMost);
    const [unresolved, outbox] = await Promise.all([countUnresolved(db, { most }), readOutboxAges(db, names)]);
    return { unresolved, outbox };
  },
  examineWork: async (runtime) => (await import("../../parts/alerts/check-alerts.ts")).examineWork(runtime),
  check: async (runtime, database) =>
    (await import("../../parts/alerts/check-alerts.ts")).checkAlerts(runtime, database),
};
