import { words } from "../../app/rights.ts";
import type { Part } from "../../app/part.ts";
import { handlerOf } from "./dispatch/feed-place.ts";
import { deliveryReadings } from "./metrics.ts";

/** Readers of the feed, and which change goes to whom: what handlers and forwarding stand on. */
export const delivery: Part = {
  name: "delivery",
  rights: {
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
  },
  sql: () => Promise.resolve({ program: [new URL("./dispatch/remove-runs.sql", import.meta.url)] }),
  commands: [
    {
      lists: { "changes [options] [id]": "the feed: what changed in the mirror, in order" },
      load: async () => (await import("./cli/changes.ts")).registerChanges,
    },
  ],
  metrics: deliveryReadings,
  answers: () => ({
    handlersHealth: async (db, counted) =>
      (await import("./dispatch/handler-health.ts")).readHandlersHealth(db, counted),
    feedConsumers: async (db) => (await import("./consumers.ts")).listConsumers(db),
    handlerOf,
  }),
  async pages({ parts, ask }) {
    const { handlerPagesFor } = await import("./pages/handler-routes.ts");
    const hasHandlers = parts.some(({ name }) => name === "handlers");
    return [handlerPagesFor({ hasHandlers, destinationOf: ask.destinationOf })];
  },
  async erase(trx, { ids, named }) {
    const { erasePauseReasons, eraseRuns } = await import("./dispatch/erase-runs.ts");
    await eraseRuns(trx, ids);
    return { reasons: await erasePauseReasons(trx, named) };
  },
  settle: async (trx) => ({ recipients: await (await import("./dispatch/after-restore.ts")).holdRuns(trx) }),
};
