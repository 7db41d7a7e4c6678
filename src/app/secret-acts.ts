import { type SecretsContext, listSecretOverviews } from "../core/receiver/list-secrets.ts";
import type { SecretOverview } from "../core/receiver/secrets-overview.ts";
import { type AddedSecret, addSecret, assertSecretLimit, retireSecret } from "../core/receiver/secrets-store.ts";
import { ConfigurationError } from "../platform/errors.ts";
import { shortLine } from "../platform/free-text.ts";
import { inTransaction } from "../platform/postgres/transactions.ts";
import { ActRefused, type CommandAct, recordOf } from "./people/act.ts";
import { instant, optional, reference, text, wholeNumber, withDefault } from "./people/fields.ts";

interface Window {
  notBefore: Date | null;
  notAfter: Date | null;
}

/** Stores a signing secret. Its value is no field, since no option and no address may hold it. */
export const addingSecret: CommandAct<
  SecretsContext & { value: string },
  Window & { note: string | null },
  AddedSecret
> = {
  name: "secret.added",
  fields: { notBefore: optional(instant), notAfter: optional(instant), note: optional(text(shortLine)) },
  async run({ db, encryption, scheme, now, value }, call) {
    const { note, ...window } = call.input;
    if (encryption === null) throw noKey();
    if (window.notAfter !== null && window.notAfter <= now) {
      throw new ActRefused(
        "invalid",
        `The end, ${window.notAfter.toISOString()}, is in the past: the secret would never be used.`,
      );
    }
    await assertSecretLimit(db, now, { value });
    return inTransaction(db, async (trx) => {
      const added = await addSecret({ db: trx, encryption }, scheme, { value, ...window, note });
      const { id, outcome } = added;
      if (outcome === "known") {
        throw new ActRefused("hindered", `This secret is stored already, as ${id}; nothing was changed.`);
      }
      const after = outcome === "added" ? { after: { ...window } } : {};
      await recordOf({ name: `secret.${outcome}` }, call)(trx, { subject: { kind: "secret", id }, ...after });
      return added;
    });
  },
};

const noKey = () =>
  new ConfigurationError(
    "TALLYHOOK_ENCRYPTION_KEY is not set, so no secret can be stored. Set it to 64 hex digits, the same on every " +
      "machine (openssl rand -hex 32).",
  );

/** Hours without use after which a secret is safe to retire. */
export const quietHoursField = withDefault(wholeNumber(1, 8_760, "hours"), 48);

interface RetiringDeps extends SecretsContext {
  /** Called before the last secret ends, with the reason not to, and may throw: then nothing was changed. */
  confirmLast(reason: string): Promise<void>;
}

export interface RetiredSecret {
  id: string;
  ends: Date;
  /** The secret before the change. */
  secret: SecretOverview;
  /** The id of the same secret in the environment, which stays live; null if there is none. */
  twin: string | null;
}

/** Sets the end of a secret that is stored in the database; `at` null: now. */
export const retiringSecret: CommandAct<
  RetiringDeps,
  { secret: string; at: Date | null; quietHours: number },
  RetiredSecret
> = {
  name: "secret.retired",
  fields: { secret: reference, at: optional(instant), quietHours: quietHoursField },
  async run({ confirmLast, ...atHand }, call) {
    const { secret: id, at, quietHours } = call.input;
    const { db, now } = atHand;
    const ends = at ?? now;
    if (id.startsWith("env:")) {
      const message = `${id} comes from SVC_WEBHOOK_SECRETS: remove it there and restart the receivers.`;
      throw new ActRefused("hindered", message);
    }
    const all = await listSecretOverviews(atHand, quietHours);
    const secret = all.find((each) => each.id === id);
    if (secret === undefined) throw new ActRefused("unknown", `There is no secret ${id}.`);
    // A later end may make a secret live again that had ended.
    if (ends > now) await assertSecretLimit(db, now, { id });
    if (!all.some((other) => other.id !== id && verifiesAt(other, ends))) {
      await confirmLast(
        `${id} is the only secret from ${ends.toISOString()} on: without it every delivery would be refused.`,
      );
    }
    await inTransaction(db, async (trx) => {
      await retireSecret(trx, id, { now, at: ends });
      await recordOf(retiringSecret, call)(trx, {
        subject: { kind: "secret", id },
        before: { notAfter: secret.notAfter },
        after: { notAfter: ends },
      });
    });
    const twin = all.find((other) => other.id === id.replace("db:", "env:"));
    return { id, ends, secret, twin: twin?.id ?? null };
  },
};

function verifiesAt({ state, notBefore, notAfter }: SecretOverview, at: Date): boolean {
  if (state === "unusable") return false;
  return (notBefore === null || notBefore <= at) && (notAfter === null || notAfter > at);
}
