import type { Part } from "../../app/part.ts";

/** The stand-in for the service, and what plays on it. */
export const sandbox: Part = {
  name: "sandbox",
  commands: [
    {
      lists: { "sandbox [options]": "run a local stand-in for the commerce service, until a signal" },
      load: async () => (await import("./cli/sandbox.ts")).registerSandbox,
    },
    {
      lists: {
        "trigger [options] <kind>":
          "make the sandbox do what leads to a change of this kind, and wait until the feed has it; " + "sandbox only",
      },
      load: async () => (await import("./cli/trigger.ts")).registerTrigger,
    },
    {
      lists: {
        "demo [options]":
          "lose, repeat and reorder webhooks of a sandbox of its own, then heal; exit 0 only if " +
          "mirror and service are equal",
      },
      load: async () => (await import("./cli/demo/demo.ts")).registerDemo,
    },
    {
      lists: {
        "gameday [options]":
          "practise: make faults in a system of its own, show only their alerts, and check the " +
          "repair; sandbox only",
      },
      load: async () => (await import("./cli/gameday/gameday.ts")).registerPlay,
    },
  ],
  answers: (runtime) => ({
    startSandbox: async () => (await import("./local-sandbox.ts")).startLocalSandbox(runtime),
    resetSandbox: async (removeRest) => (await import("./local-sandbox.ts")).resetSandbox(runtime.config, removeRest),
  }),
};
