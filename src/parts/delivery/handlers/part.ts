import type { Part } from "../../../app/part.ts";
import { handlerReadings } from "./metrics.ts";

/** Runs the merchant's own code on changes, in a process of its own. Stands on `delivery`. */
export const handlers: Part = {
  name: "handlers",
  commands: [
    {
      lists: { handlers: "your own code that runs on changes: docs/handlers.md" },
      load: async () => (await import("./command.ts")).registerHandlers,
    },
  ],
  metrics: handlerReadings,
  answers: () => ({
    downHosts: async (db, patience) => (await import("../dispatch/handler-hosts.ts")).readDownHosts(db, patience),
  }),
  async work(runtime, { service }) {
    await (await import("./supervised-handlers.ts")).superviseOwnHandlers(runtime, service);
  },
  checks: [
    {
      names: ["handlers"],
      needsDatabase: true,
      examine: async (runtime) => [await (await import("./check-handlers.ts")).checkHandlers(runtime)],
    },
  ],
};
