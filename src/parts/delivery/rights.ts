import { type DatabaseRights, words } from "../../app/rights.ts";

export const deliveryRights: DatabaseRights = {
  tables: {
    "feed.consumers": { backup: "keep", worker: "arwd" },
    "dispatch.handlers": {
      backup: "keep",
      worker: "arwd",
      // To pause and to resume one.
      dashboard: { all: "r", update: words("paused_at paused_by pause_reason probe_at resumed_at") },
    },
    "dispatch.hosts": { backup: "leave", worker: "arwd", dashboard: "r" },
    "dispatch.counts": { backup: "keep", worker: "arwd", dashboard: "r" },
    "dispatch.runs": {
      backup: "keep",
      worker: "arwd",
      dashboard: {
        all: "rd",
        // To try one again, and to skip one: then it is the turn of the next.
        update: words("state attempts due_at claimed_until is_first"),
      },
    },
  },
  given: ["dispatch.handlers.resumed_at", "dispatch.runs.due_at", "feed.consumers.moved_at"],
};
