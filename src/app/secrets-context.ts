import type { Knex } from "knex";
import type { SecretsContext } from "../core/receiver/list-secrets.ts";
import type { Runtime } from "./runtime.ts";

/** Dependencies for listing and changing secrets. */
export async function secretsContextOf(runtime: Runtime, db: Knex): Promise<SecretsContext> {
  const { config, secrets, wallClock } = runtime;
  return {
    db,
    encryption: config.encryptionKey === "none" ? null : await runtime.encryption(),
    scheme: config.signature.scheme,
    environment: secrets.webhookSecrets,
    now: wallClock.now(),
  };
}
