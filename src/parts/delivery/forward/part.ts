import type { Part } from "../../../app/part.ts";
import { destinationNamed } from "./destination-name.ts";

/** Sends changes and webhooks to other programs, signed. Stands on `delivery`. */
export const forward: Part = {
  name: "forward",
  commands: [
    {
      lists: { forward: "changes and webhooks that are sent to other programs: docs/forwarding.md" },
      load: async () => (await import("./command.ts")).registerForward,
    },
  ],
  answers: () => ({ destinationOf: destinationNamed }),
  work: async (runtime) => (await import("./run-forwarding.ts")).runForwarding(runtime),
  checks: [
    {
      names: ["forward"],
      needsDatabase: false,
      examine: async (runtime) => (await import("./check-forwarding.ts")).checkForwarding(runtime),
    },
  ],
};
