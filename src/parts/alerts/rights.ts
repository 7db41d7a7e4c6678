import { type DatabaseRights } from "../../app/rights.ts";

export const alertsRights: DatabaseRights = {
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
};
