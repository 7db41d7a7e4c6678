import type { ServiceLocation } from "../../../app/answers.ts";
import type { ServiceClient } from "../../../core/client/service-client.ts";
import { endpointPages } from "./endpoint-routes.ts";
import type { PageGroup } from "../../../app/dashboard/page-group.ts";
import { readingToolsOf } from "../endpoint-tools.ts";
import type { Runtime } from "../../../app/runtime.ts";

/** A page that waits for the service still answers within three seconds. */
const deadlineMs = 2_000;

/** The page of this deployment's endpoint. */
export const endpointPagesOf = (runtime: Runtime, service?: ServiceLocation): PageGroup =>
  endpointPages(async (db) => {
    const tools = readingToolsOf(runtime, db, service);
    const hasKey = runtime.config.encryptionKey !== "none";
    const encryption = hasKey ? await runtime.encryption() : null;
    return { ...tools, client: impatient(tools.client), encryption };
  });

const impatient = (client: ServiceClient): ServiceClient => ({
  get: (endpoint, call, options) => client.get(endpoint, call, { deadlineMs, ...options }),
  send: (endpoint, call, options) => client.send(endpoint, call, { deadlineMs, ...options }),
  listPages: (endpoint, call, options) =>
    client.listPages(endpoint, call, { priority: "fetch", deadlineMs, ...options }),
  close: () => client.close(),
});
