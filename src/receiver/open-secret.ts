import type { Encryption } from "../platform/encryption.ts";
import type { SignatureSchemeName, SigningSecret } from "../service/signature/scheme.ts";
import { secretProblem } from "../service/signature/secret-problem.ts";
import type { SecretRow } from "./secrets-store.ts";

/** A stored secret, and what it verifies with; null when it cannot be used, and then why. Holds the secret. */
export interface KnownSecret {
  row: SecretRow;
  secret: SigningSecret | null;
  problem: string | null;
}

export interface OpeningTools {
  /** Null when no key is configured: stored secrets cannot be read then, which is a problem, not an error. */
  encryption: Pick<Encryption, "decrypt"> | null;
  scheme: SignatureSchemeName;
}

/** A row as a secret; the object of last time when nothing changed, so that its derived keys are kept. */
export function openSecret(
  { encryption, scheme }: OpeningTools,
  row: SecretRow,
  known: ReadonlyMap<string, KnownSecret>,
): KnownSecret {
  const before = known.get(row.id);
  if (before !== undefined && isSameRow(before.row, row)) return before;
  const unusable = (problem: string): KnownSecret => ({
    row,
    secret: null,
    problem: `The signing secret ${row.id} ${problem}.`,
  });
  if (encryption === null) {
    return unusable("cannot be decrypted: TALLYHOOK_ENCRYPTION_KEY is not set");
  }
  let value: string;
  try {
    value = encryption.decrypt({ keyId: row.key_id, ciphertext: row.ciphertext });
  } catch {
    return unusable(
      `cannot be decrypted with TALLYHOOK_ENCRYPTION_KEY (it was stored under the key ${row.key_id}); set the key of that time, or add the secret again`,
    );
  }
  const problem = secretProblem(scheme, value);
  if (problem !== null) return unusable(problem);
  const secret = { id: row.id, value, notBefore: row.not_before, notAfter: row.not_after };
  return { row, secret: Object.freeze(secret), problem: null };
}

function isSameRow(a: SecretRow, b: SecretRow): boolean {
  return (
    a.ciphertext.equals(b.ciphertext) &&
    a.key_id === b.key_id &&
    a.not_before?.getTime() === b.not_before?.getTime() &&
    a.not_after?.getTime() === b.not_after?.getTime()
  );
}
