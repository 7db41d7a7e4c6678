import type { Part } from "../../app/part.ts";
import { alertReadings } from "./metrics.ts";

/** Notifies people of what is wrong: rules, storms, the outbox, channels. */
export const alerts: Part = {
  name: "alerts",
  rights: {
    tables: {
      // The dashboard writes alerts where a heal or a person ends or raises one.
      "alerts.alerts": { backup: "keep", worker: "arwd", dashboard: "arw", bi: "r" },
      "alerts.history": { backup: "keep", worker: "ard", dashboard: "ar", bi: "r" },
      "alerts.outbox": { backup: "keep", worker: "arwd", dashboard: "arw" },
      "alerts.digest_items": { backup: "keep", worker: "arwd", dashboard: "ard" },
      "alerts.storm_items": { backup: "keep", worker: "arwd", dashboard: "ard" },
      "alerts.seen_values": { backup: "keep", worker: "ar", dashboard: "ar" },
      "alerts.marks": { backup: "keep", worker: "arw", dashboard: "arw" },
      "alerts.event_hours": { backup: "keep", worker: "arwd" },
      "alerts.silences": { backup: "keep", worker: "arwd", dashboard: "arw" },
      // Workers of the lost system would be missed.
      "alerts.heartbeats": { backup: "leave", worker: "arwd", dashboard: "r" },
    },
    given: ["alerts.heartbeats.beat_at", "alerts.marks.updated_at", "alerts.outbox.due_at", "alerts.silences.began_at"],
  },
  commands: [
    {
      lists: {
        alerts: "what people are notified of: declines, chargebacks, drift, expected events that are " + "missing",
      },
      load: async () => (await import("./cli/alerts.ts")).registerAlerts,
    },
  ],
  metrics: alertReadings,
  listener: async (runtime) => (await import("./run-alerts.ts")).createListener(runtime),
  tasks: async (runtime) => (await import("./run-alerts.ts")).alertTasks(runtime),
  async work(runtime, role) {
    const { runAlertSender, runAlertWatch } = await import("./run-alerts.ts");
    await runAlertSender(runtime);
    await runAlertWatch(runtime, role);
  },
  answers: (runtime) => ({
    async dunningSettings() {
      const { rules } = (await import("./run-alerts.ts")).alertSettings(runtime);
      const { lastAttempt, withinHours } = rules.dunning_last_retry;
      return { lastAttempt, withinHours, contactAtAttempt: rules.dunning_renewal.contactAtAttempt };
    },
    watchAlerts: async (trx) => (await import("./told.ts")).watchTold(trx),
    alertsAt: async (db, at, of) => (await import("./told.ts")).toldAt(db, at, of),
  }),
  async pages(runtime) {
    const { alertPages } = await import("./pages/alert-routes.ts");
    const { alertSettings } = await import("./run-alerts.ts");
    const { runbooksUrl } = runtime.config;
    const deps = { settings: () => alertSettings(runtime) };
    return [alertPages({ runbooksUrl, deps: ({ db, clock }) => ({ db, clock, ...deps }) })];
  },
  checks: [
    {
      names: ["worker", "scheduler"],
      needsDatabase: true,
      examine: async (runtime) => (await import("./check-alerts.ts")).examineWork(runtime),
    },
    {
      names: ["alerts"],
      needsDatabase: false,
      examine: async (runtime, database) => (await import("./check-alerts.ts")).checkAlerts(runtime, database),
    },
  ],
  async erase(trx, person) {
    const { alertsAbout, redactMessages } = await import("./redact-messages.ts");
    const counts = await redactMessages(trx, person);
    return { counts, subjects: [{ kind: "alert", ids: await alertsAbout(trx, person) }] };
  },
  async settle(trx, runtime, ranUntil) {
    const { alertSettings } = await import("./run-alerts.ts");
    const { presumeSent } = await import("./presume-told.ts");
    return presumeSent(trx, { settings: alertSettings(runtime), timeZone: runtime.config.timeZone }, ranUntil);
  },
};
