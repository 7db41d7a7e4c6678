import type { Knex } from "knex";
import type { Encryption } from "../platform/encryption.ts";
import { UsageError } from "../platform/errors.ts";
import { environmentSecrets } from "../receiver/secrets-environment.ts";
import { describeSecrets, isUsableRow } from "../receiver/secrets-overview.ts";
import type { SecretOverview } from "../receiver/secrets-overview.ts";
import {
  assertSecretRoom,
  listSecretRows,
  recentSecretUses,
  retireSecret,
} from "../receiver/secrets-store.ts";
import type { SignatureSchemeName } from "../service/signature/scheme.ts";

export interface SecretsAtHand {
  db: Knex;
  /** Null when no key is configured. */
  encryption: Encryption | null;
  scheme: SignatureSchemeName;
  /** Values of SVC_WEBHOOK_SECRETS. */
  environment: readonly string[];
  now: Date;
}

/** Every secret, newest first. */
export async function surveySecrets(
  { db, encryption, scheme, environment, now }: SecretsAtHand,
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

export interface RetiredSecret {
  /** As it was before. */
  secret: SecretOverview;
  /** The id of the same secret in the environment, where it does not end. */
  twin: string | null;
}

/**
 * Ends a secret of the database at a time. Throws `UsageError` for one of the environment, an unknown one, and,
 * where `confirmLast` throws it, for the last one: after it every delivery would be refused. `confirmLast` is given
 * the reason to ask, before anything is changed.
 */
export async function retireGuarded(
  atHand: SecretsAtHand,
  id: string,
  {
    at,
    quietHours,
    confirmLast,
  }: { at: Date; quietHours: number; confirmLast: (reason: string) => Promise<void> },
): Promise<RetiredSecret> {
  if (id.startsWith("env:")) {
    throw new UsageError(
      `${id} is one of SVC_WEBHOOK_SECRETS: take it out there and restart the receivers.`,
    );
  }
  const all = await surveySecrets(atHand, quietHours);
  const secret = all.find((each) => each.id === id);
  if (secret === undefined) {
    throw new UsageError(`There is no secret ${id}. "tallyhook secrets list" shows them.`);
  }
  // An end that is put off may bring a secret back.
  if (at > atHand.now) await assertSecretRoom(atHand.db, atHand.now, { id });
  const remains = all.some((other) => other.id !== id && verifiesAt(other, at));
  if (!remains) {
    await confirmLast(
      `${id} is the only secret from ${at.toISOString()} on: without it every delivery would be refused.`,
    );
  }
  await retireSecret(atHand.db, id, { now: atHand.now, at });
  const twin = all.find((other) => other.id === id.replace("db:", "env:"));
  return { secret, twin: twin?.id ?? null };
}

function verifiesAt({ state, notBefore, notAfter }: SecretOverview, at: Date): boolean {
  if (state === "unusable") return false;
  return (notBefore === null || notBefore <= at) && (notAfter === null || notAfter > at);
}
