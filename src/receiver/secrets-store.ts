import { createHash } from "node:crypto";
import type { Knex } from "knex";
import {
  type SignatureSchemeName,
  type SigningSecret,
  secretProblem,
} from "../contract/signature/verification.ts";
import type { Encryption } from "../platform/encryption.ts";
import { ConfigurationError, UsageError } from "../platform/errors.ts";

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

/** Rejects rather than hang on a server that does not answer; the connection is given up with it. */
const queryTimeoutMs = 3_000;

/** Every secret ever added, newest first. */
export function listSecretRows(db: Knex): Promise<SecretRow[]> {
  return db<SecretRow>("receiver.secrets")
    .orderBy([{ column: "created_at", order: "desc" }, { column: "id" }])
    .timeout(queryTimeoutMs);
}

/** The secrets that verify now or will, newest first. */
export function listUnendedSecretRows(db: Knex, now: Date): Promise<SecretRow[]> {
  return db<SecretRow>("receiver.secrets")
    .where((ends) => void ends.whereNull("not_after").orWhere("not_after", ">", now))
    .orderBy([{ column: "created_at", order: "desc" }, { column: "id" }])
    .timeout(queryTimeoutMs);
}

/**
 * Throws `UsageError` where another secret that verifies now or later would be one too many. Call it before anything
 * is done that cannot be undone; two at once may get one past it. Of a secret that is stored already nothing is said.
 */
export async function assertSecretRoom(
  db: Knex,
  now: Date,
  secret: { value: string } | { id: string } | null = null,
): Promise<void> {
  const unended = await listUnendedSecretRows(db, now);
  if (unended.length < maxSecrets) return;
  const id = secret === null ? null : "id" in secret ? secret.id : storedId(secret.value);
  if (unended.some((row) => row.id === id)) return;
  throw new UsageError(
    `There are ${unended.length} signing secrets that have not ended, and ${maxSecrets} is the most: every request is ` +
      'checked with each of them. "tallyhook secrets list" says which are safe to retire; end one with "tallyhook secrets retire ID".',
  );
}

export interface NewSecret {
  value: string;
  notBefore?: Date;
  notAfter?: Date;
  note?: string;
}

export interface AddedSecret {
  id: string;
  /** `encrypted_anew`: it was there, and could not be read with the present key; its times are as they were. */
  outcome: "added" | "encrypted_anew" | "known";
}

/**
 * Stores a secret, encrypted; running receivers take it up within seconds. Of one that is there already the window
 * stays as it is, also of a retired one, which may have been retired because it leaked; only what the present key does
 * not read is encrypted anew, so that a lost key is no end and a change of keys has one. Throws `UsageError` for a
 * value that could verify nothing, or a window that never opens.
 */
export async function addSecret(
  { db, encryption }: { db: Knex; encryption: Encryption },
  scheme: SignatureSchemeName,
  secret: NewSecret,
): Promise<AddedSecret> {
  const { value, notBefore = null, notAfter = null, note = null } = secret;
  const problem = secretProblem(scheme, value);
  if (problem !== null) throw new UsageError(`The secret ${problem}.`);
  if (notBefore !== null && notAfter !== null && notAfter <= notBefore) {
    throw new UsageError("The secret would end before it begins.");
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

/** Of a row that is there only the encryption changes. True when it was not. */
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
 * Ends a secret at a time, past or future. Running receivers follow within seconds. Repeatable; the last
 * call wins, so an end can be put off. False when there is no such secret in the database.
 */
export async function retireSecret(
  db: Knex,
  id: string,
  times: { now: Date; at: Date },
): Promise<boolean> {
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
 * When each secret verified one of the newest events: for secrets of the environment nothing else
 * remembers it. Reads at most `newest` receipts.
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
 * In SVC_WEBHOOK_SECRETS, and as many again of those stored that have not ended. Each costs every forged request another
 * pass over its body, some 2 ms for 1 MiB; a rotation needs two for each endpoint.
 */
const maxSecrets = 8;

/**
 * A name for a secret that tells it from others without showing it, the same wherever it is kept: ten hex
 * digits of a hash, far too few to be of use to who does not have the secret.
 */
export function secretFingerprint(value: string): string {
  return createHash("sha256")
    .update("tallyhook signing secret\0")
    .update(value)
    .digest("hex")
    .slice(0, 10);
}

/**
 * The secrets of `SVC_WEBHOOK_SECRETS`, live for as long as the process runs. The id does not depend on the
 * place in the list, so that putting a newer one in front renames nothing in the inbox. Throws
 * `ConfigurationError` for too many, and for a value that the scheme
 * cannot use; a secret that verifies nothing must not start.
 */
export function environmentSecrets(
  scheme: SignatureSchemeName,
  values: readonly string[],
): SigningSecret[] {
  const distinct = [...new Set(values)];
  if (distinct.length > maxSecrets) {
    throw new ConfigurationError(
      `SVC_WEBHOOK_SECRETS holds ${distinct.length} secrets, and ${maxSecrets} is the most: every request is checked with ` +
        "each of them. Take out those that nothing is signed with any more.",
    );
  }
  return distinct.map((value, index) => {
    const problem = secretProblem(scheme, value);
    if (problem !== null) {
      throw new ConfigurationError(
        `SVC_WEBHOOK_SECRETS: secret number ${index + 1} ${problem}. ` +
          `Take the signing_secret that the service showed when the endpoint was made, or set SVC_SIGNATURE_SCHEME (now ${scheme}).`,
      );
    }
    return { id: `env:${secretFingerprint(value)}`, value, notBefore: null, notAfter: null };
  });
}
