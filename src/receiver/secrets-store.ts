import type { Knex } from "knex";
import type { Encryption } from "../platform/encryption.ts";
import { UsageError } from "../platform/errors.ts";
import type { SignatureSchemeName } from "../service/signature/scheme.ts";
import { secretProblem } from "../service/signature/secret-problem.ts";
import { secretFingerprint } from "./secrets-environment.ts";

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

export interface NewSecret {
  value: string;
  notBefore?: Date;
  notAfter?: Date;
  note?: string;
}

/**
 * Stores a secret, encrypted; running receivers take it up within seconds. Adding one that is there already
 * changes nothing and says so: also a retired one, which may have been retired because it leaked. Throws
 * `UsageError` for a value that could verify nothing, or a window that never opens.
 */
export async function addSecret(
  { db, encryption }: { db: Knex; encryption: Encryption },
  scheme: SignatureSchemeName,
  secret: NewSecret,
): Promise<{ id: string; added: boolean }> {
  const { value, notBefore = null, notAfter = null, note = null } = secret;
  const problem = secretProblem(scheme, value);
  if (problem !== null) throw new UsageError(`The secret ${problem}.`);
  if (notBefore !== null && notAfter !== null && notAfter <= notBefore) {
    throw new UsageError("The secret would end before it begins.");
  }
  const { keyId, ciphertext } = encryption.encrypt(value);
  const id = `db:${secretFingerprint(value)}`;
  const inserted = await db<SecretRow>("receiver.secrets")
    .insert({ id, ciphertext, key_id: keyId, not_before: notBefore, not_after: notAfter, note })
    .onConflict("id")
    .ignore()
    .returning("id");
  return { id, added: inserted.length > 0 };
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
