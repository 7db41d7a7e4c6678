import type { Part } from "../../app/part.ts";
import { handlerOf } from "./dispatch/feed-place.ts";
import { deliveryReadings } from "./metrics.ts";
import { deliveryRights } from "./rights.ts";

/** Readers of the feed, and which change goes to whom: what handlers and forwarding stand on. */
export const delivery: Part = {
  name: "delivery",
  rights: deliveryRights,
  sql: () => Promise.resolve({ program: [new URL("./dispatch/remove-runs.sql", import.meta.url)] }),
  commands: [{ names: ["changes"], load: async () => (await import("./cli/changes.ts")).registerChanges }],
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
