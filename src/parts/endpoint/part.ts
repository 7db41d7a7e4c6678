import { words } from "../../app/rights.ts";
import type { Part } from "../../app/part.ts";

/** Looks after this deployment's webhook endpoint at the service. */
export const endpoint: Part = {
  name: "endpoint",
  rights: {
    tables: {
      "reconcile.endpoints": { backup: "keep", worker: "r", dashboard: "arw" },
      "reconcile.endpoint_calls": {
        backup: "keep",
        worker: "r",
        dashboard: { all: "ra", update: words("settled_at outcome endpoint_id") },
      },
    },
  },
  commands: [
    {
      lists: { endpoint: "this deployment's webhook endpoint at the service" },
      load: async () => (await import("./cli/endpoint.ts")).registerEndpoint,
    },
  ],
  answers: ({ config }) => ({
    async endpointProblems(tools) {
      const { inspectEndpoint } = await import("./inspect-endpoint.ts");
      const { webhookUrl } = await import("./endpoints.ts");
      return inspectEndpoint(tools, webhookUrl(config.publicUrl));
    },
    rememberEndpoint: async (db, known) =>
      (await import("./endpoints.ts")).rememberEndpoint(db, { ...known, rotationEndsAt: null }),
    forgetEndpoint: async (db, id) => (await import("./endpoints.ts")).forgetEndpoint(db, id),
  }),
  pages: async (runtime, service) => [(await import("./pages/pages-of.ts")).endpointPagesOf(runtime, service)],
  checks: [
    {
      names: ["endpoint"],
      needsDatabase: false,
      examine: async (...args) => [await (await import("./check-endpoint.ts")).checkEndpoint(...args)],
    },
  ],
};
