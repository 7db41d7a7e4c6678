import type { ServiceLocation } from "../../app/answers.ts";
import { randomUUID } from "node:crypto";
import type { Knex } from "knex";
import { webhookUrl } from "./endpoints.ts";
import type { EndpointTools } from "./obtain-secret.ts";
import type { Runtime } from "../../app/runtime.ts";

/**
 * Dependencies of managing the endpoint. Throws `ConfigurationError` without an encryption key: a secret would be lost.
 */
export const endpointToolsOf = async (runtime: Runtime, db: Knex): Promise<EndpointTools> => ({
  ...readingToolsOf(runtime, db),
  encryption: await runtime.encryption(),
});

/** Dependencies of reading the endpoint. `service`: its location; absent: from the settings. */
export function readingToolsOf(
  runtime: Runtime,
  db: Knex,
  service?: ServiceLocation,
): Omit<EndpointTools, "encryption"> {
  const { config, wallClock } = runtime;
  return {
    db,
    client: runtime.serviceClient(service),
    scheme: config.signature.scheme,
    wallClock,
    newKey: () => randomUUID(),
    url: webhookUrl(config.publicUrl),
  };
}
