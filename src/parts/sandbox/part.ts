import type { Part } from "../../app/part.ts";

/** The stand-in for the service, and what plays on it. */
export const sandbox: Part = {
  name: "sandbox",
  commands: [
    { names: ["sandbox"], load: async () => (await import("./cli/sandbox.ts")).registerSandbox },
    { names: ["trigger"], load: async () => (await import("./cli/trigger.ts")).registerTrigger },
    { names: ["demo"], load: async () => (await import("./cli/demo/demo.ts")).registerDemo },
    { names: ["gameday"], load: async () => (await import("./cli/gameday/gameday.ts")).registerPlay },
  ],
  answers: (runtime) => ({
    startSandbox: async () => (await import("./local-sandbox.ts")).startLocalSandbox(runtime),
    resetSandbox: async (removeRest) => (await import("./local-sandbox.ts")).resetSandbox(runtime.config, removeRest),
  }),
};
