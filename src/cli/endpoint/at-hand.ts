import { randomUUID } from "node:crypto";
import { migratedDatabase } from "../../runtime.ts";
import type { Runtime } from "../../runtime.ts";
import type { CliContext } from "../context.ts";
import { webhookUrl } from "./own-endpoint.ts";
import type { EndpointTools } from "./secret-call.ts";

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
