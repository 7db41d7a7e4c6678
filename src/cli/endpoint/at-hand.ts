import { randomUUID } from "node:crypto";
import type { Knex } from "knex";
import { ConfigurationError } from "../../platform/errors.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Encryption } from "../../platform/encryption.ts";
import { migratedDatabase } from "../../runtime.ts";
import type { Runtime } from "../../runtime.ts";
import type { ServiceClient } from "../../service/client.ts";
import type { SignatureSchemeName } from "../../service/signature/scheme.ts";
import type { CliContext } from "../context.ts";

/** What the endpoint commands work with. */
export interface EndpointTools {
  db: Knex;
  client: ServiceClient;
  encryption: Encryption;
  scheme: SignatureSchemeName;
  wallClock: Clock;
  /** A UUID v4. */
  newKey(): string;
  /** Where the service reaches this deployment; null when no setting says so. */
  url: string | null;
}

/**
 * Everything that is needed is made before a call: without a key to encrypt with, the answer's secret would be lost.
 */
export function withEndpointTools<T>(
  context: CliContext,
  run: (tools: EndpointTools) => Promise<T>,
): Promise<T> {
  return context.withRuntime("endpoint", async (runtime) => run(await toolsOf(runtime)), {
    logLevel: "warn",
  });
}

async function toolsOf(runtime: Runtime): Promise<EndpointTools> {
  const { config, wallClock } = runtime;
  const db = await migratedDatabase(runtime);
  return {
    db,
    client: runtime.serviceClient(),
    encryption: await runtime.encryption(),
    scheme: config.signature.scheme,
    wallClock,
    newKey: () => randomUUID(),
    url: webhookUrl(config.publicUrl),
  };
}

/** The address that the service sends events to. */
export const webhookUrl = (publicUrl: string | null): string | null =>
  publicUrl === null ? null : `${publicUrl}/webhooks`;

export function requireUrl(url: string | null): string {
  if (url !== null) return url;
  throw new ConfigurationError(
    "PUBLIC_URL is not set, so the service cannot be told where to send events. Set it, such as https://hooks.example.com, or say --url.",
  );
}
