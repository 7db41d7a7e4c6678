import type { Knex } from "knex";
import type { SignatureSchemeName } from "../contract/signature/signature-scheme.ts";
import type { Encryption } from "../../platform/encryption.ts";
import { type SecretOverview, describeSecrets, isUsableRow } from "./secrets-overview.ts";
import { environmentSecrets, listSecretRows, recentSecretUses } from "./secrets-store.ts";

export interface SecretsContext {
  db: Knex;
  /** Null if no key is configured. */
  encryption: Encryption | null;
  scheme: SignatureSchemeName;
  /** Values of SVC_WEBHOOK_SECRETS. */
  environment: readonly string[];
  now: Date;
}

/** Lists every secret, newest first. */
export async function listSecretOverviews(
  { db, encryption, scheme, environment, now }: SecretsContext,
  quietHours: number,
): Promise<SecretOverview[]> {
  return describeSecrets(
    {
      rows: await listSecretRows(db),
      environmentIds: environmentSecrets(scheme, environment).map(({ id }) => id),
      recentUses: await recentSecretUses(db),
      usable: (row) => isUsableRow(encryption, scheme, row),
    },
    { now, quietHours },
  );
}
