import { createHash } from "node:crypto";
import type { Knex } from "knex";
import { tallyhook } from "../../platform/command-line.ts";
import { type SignatureSchemeName, signatureScheme } from "../contract/signature/signature-scheme.ts";
import { type SigningSecret, secretProblem } from "../contract/signature/verification.ts";
import type { Encryption } from "../../platform/encryption.ts";
import { ConfigurationError, UsageError } from "../../platform/errors.ts";
import { redactTexts } from "../../platform/postgres/redact-texts.ts";

/** A row of `receiver.secrets`. */
export interface SecretRow {
  id: string;
  ciphertext: Buffer;
  key_id: string;
  not_before: Date | null;
  not_after: Date | null;
  created_at: Date;
  last_used_at: Date | null;
  retired_at: Date | null;
  note: string | null;
}

/**
 * A query rejects after this time instead of hanging on a server that does not answer. Its connection is dropped, too.
 */
const queryTimeoutMs = 3_000;

/** Every secret ever added, newest first. */
export function listSecretRows(db: Knex): Promise<SecretRow[]> {
  return db<SecretRow>("receiver.secrets")
    .orderBy([{ column: "created_at", order: "desc" }, { column: "id" }])
    .timeout(queryTimeoutMs);
}

/** The secrets that verify now or later, newest first. */
export function listCurrentSecretRows(db: Knex, now: Date): Promise<SecretRow[]> {
  return db<SecretRow>("receiver.secrets")
    .where((ends) => void ends.whereNull("not_after").orWhere("not_after", ">", now))
    .orderBy([{ column: "created_at", order: "desc" }, { column: "id" }])
    .timeout(queryTimeoutMs);
}

/**
 * Throws `UsageError` when one more secret that verifies now or later would exceed the limit. A secret that is already
 * stored is not counted again. Call this before any step that cannot be undone. Two concurrent calls may exceed the
 * limit by one.
 */
export async function assertSecretLimit(
  db: Knex,
  now: Date,
  secret: { value: string } | { id: string } | null = null,
): Promise<void> {
  const unended = await listCurrentSecretRows(db, now);
  if (unended.length < maxSecrets) return;
  const id = secret === null ? null : "id" in secret ? secret.id : storedId(secret.value);
  if (unended.some((row) => row.id === id)) return;
  throw new UsageError(
    `There are ${unended.length} signing secrets that have not ended; at most ${maxSecrets} are allowed, since ` +
      `every request is checked with each. "${tallyhook("secrets list")}" says which are safe to retire: end one ` +
      `with "${tallyhook("secrets retire ID")}".`,
  );
}

export interface NewSecret {
  value: string;
  notBefore?: Date | null;
  notAfter?: Date | null;
  note?: string | null;
}

export interface AddedSecret {
  id: string;
  /** `encrypted_anew`: the secret was stored, but the current key could not decrypt it. Its window is unchanged. */
  outcome: "added" | "encrypted_anew" | "known";
}

/**
 * Stores a secret, encrypted. Running receivers use it within seconds. The window of a stored secret is never changed,
 * not even of a retired one: it may have leaked. A stored secret that the current key cannot decrypt is encrypted with
 * it again, which covers a lost key and a change of keys. Throws `UsageError` for a value that cannot verify anything,
 * or a window that never opens.
 */
export async function addSecret(
  { db, encryption }: { db: Knex; encryption: Encryption },
  scheme: SignatureSchemeName,
  secret: NewSecret,
): Promise<AddedSecret> {
  const { value, notBefore = null, notAfter = null, note = null } = secret;
  const problem = secretProblem(signatureScheme(scheme), value);
  if (problem !== null) throw new UsageError(`The secret ${problem}.`);
  if (notBefore !== null && notAfter !== null && notAfter <= notBefore) {
    throw new UsageError("The secret would end before it begins. Give an end that is later than the beginning.");
  }
  const id = storedId(value);
  const known = await findSecretRow(db, id);
  if (known !== undefined && isEncryptedNow(encryption, known)) return { id, outcome: "known" };
  const { keyId, ciphertext } = encryption.encrypt(value);
  const isNew = await upsertSecretRow(db, {
    id,
    ciphertext,
    key_id: keyId,
    not_before: notBefore,
    not_after: notAfter,
    note,
  });
  return { id, outcome: isNew ? "added" : "encrypted_anew" };
}

const storedId = (value: string): string => `db:${secretFingerprint(value)}`;

function findSecretRow(db: Knex, id: string): Promise<SecretRow | undefined> {
  return db<SecretRow>("receiver.secrets").where({ id }).first();
}

/** Inserts a row, or updates only the encryption of an existing one. Returns true for a new row. */
async function upsertSecretRow(
  db: Knex,
  row: Omit<SecretRow, "created_at" | "last_used_at" | "retired_at">,
): Promise<boolean> {
  const written = await db<SecretRow>("receiver.secrets")
    .insert(row)
    .onConflict("id")
    .merge(["ciphertext", "key_id"])
    .returning<{ is_new: boolean }[]>(db.raw("xmax = 0 as is_new"));
  return written[0]?.is_new === true;
}

function isEncryptedNow(encryption: Encryption, { key_id: keyId, ciphertext }: SecretRow): boolean {
  if (keyId !== encryption.keyId) return false;
  try {
    encryption.decrypt({ keyId, ciphertext });
    return true;
  } catch {
    return false;
  }
}

/**
 * Ends a secret at a time, past or future. Running receivers follow within seconds. Repeatable: the last call wins, so
 * an end can be moved to later. Returns false when the database has no such secret.
 */
export async function retireSecret(db: Knex, id: string, times: { now: Date; at: Date }): Promise<boolean> {
  const updated = await db<SecretRow>("receiver.secrets")
    .where({ id })
    .update({ not_after: times.at, retired_at: times.now });
  return updated > 0;
}

/** Notes that a secret verified a request. Never moves the time back. */
export async function recordSecretUse(db: Knex, id: string, at: Date): Promise<void> {
  await db<SecretRow>("receiver.secrets")
    .where({ id })
    .where((older) => void older.whereNull("last_used_at").orWhere("last_used_at", "<", at))
    .update({ last_used_at: at })
    .timeout(queryTimeoutMs);
}

/**
 * The time at which each secret last verified an event, among the `newest` receipts. The use of the environment's
 * secrets is recorded nowhere else.
 */
export async function recentSecretUses(db: Knex, newest = 50_000): Promise<Map<string, Date>> {
  const { rows } = await db.raw<{ rows: { secret_id: string; last_used_at: Date }[] }>(
    `select secret_id, max(received_at) as last_used_at
       from (select secret_id, received_at from inbox.receipts order by seq desc limit ?) as newest
      group by secret_id`,
    [newest],
  );
  return new Map(rows.map((row) => [row.secret_id, row.last_used_at]));
}

/**
 * The limit for SVC_WEBHOOK_SECRETS, and also for the stored secrets that have not ended. Each secret costs every
 * forged request another pass over its body, some 2 ms for 1 MiB. A rotation needs two for each endpoint.
 */
const maxSecrets = 8;

/**
 * An id for a secret, the same wherever the secret is kept. Ten hex digits of a hash do not reveal it.
 */
export function secretFingerprint(value: string): string {
  return createHash("sha256").update("tallyhook signing secret\0").update(value).digest("hex").slice(0, 10);
}

/**
 * The secrets of `SVC_WEBHOOK_SECRETS`, live for as long as the process runs. An id does not depend on the place in the
 * list, so a newer secret in front renames nothing in the inbox. Throws `ConfigurationError` for too many secrets, and
 * for a value that the scheme cannot use: the receiver must not start with a secret that verifies nothing.
 */
export function environmentSecrets(scheme: SignatureSchemeName, values: readonly string[]): SigningSecret[] {
  const distinct = [...new Set(values)];
  if (distinct.length > maxSecrets) {
    throw new ConfigurationError(
      `SVC_WEBHOOK_SECRETS holds ${distinct.length} secrets; at most ${maxSecrets} are allowed, since every ` +
        "request is checked with each. Remove those that no longer sign anything.",
    );
  }
  return distinct.map((value, index) => {
    const problem = secretProblem(signatureScheme(scheme), value);
    if (problem !== null) {
      throw new ConfigurationError(
        `SVC_WEBHOOK_SECRETS: secret number ${index + 1} ${problem}. Use the signing_secret that the service ` +
          `showed when the endpoint was created, or change SVC_SIGNATURE_SCHEME (now ${scheme}).`,
      );
    }
    return { id: `env:${secretFingerprint(value)}`, value, notBefore: null, notAfter: null };
  });
}

/** Takes out the notes of signing secrets that name a person. Needs the erasure's transaction; idempotent. */
export const eraseSecretNotes = (trx: Knex.Transaction, named: (text: string) => boolean): Promise<number> =>
  redactTexts(trx, { table: "receiver.secrets", key: "id", column: "note" }, ({ text }) => named(text));
