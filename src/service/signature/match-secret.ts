import { timingSafeEqual } from "node:crypto";
import type { KeyObject } from "node:crypto";

import { hmacSha256 } from "./hmac-keys.ts";
import type { SigningSecret } from "./scheme.ts";

const digestBytes = 32;

/** More signatures than a rotation can need are refused before any is computed. */
export const maxSignatures = 16;

type Match = { reason: "match"; secretId: string } | { reason: "no_match" | "no_secret" };

/**
 * Finds the live secret that made one of the given signatures over the signed parts. Every live
 * secret is tried against every signature, also after a match, so that the time taken says nothing
 * about which one matched.
 *
 * @param digests decoded signatures; those that are not 32 bytes long match nothing
 */
export function matchSecret(
  keyOf: (secret: SigningSecret) => KeyObject | null,
  request: { secrets: readonly SigningSecret[]; now: Date },
  signedParts: readonly (string | Buffer)[],
  digests: readonly Buffer[],
): Match {
  let matched: string | null = null;
  let liveSecrets = 0;
  for (const secret of request.secrets) {
    const key = isLive(secret, request.now) ? keyOf(secret) : null;
    if (key === null) continue;
    liveSecrets += 1;
    const expected = hmacSha256(key, signedParts);
    for (const digest of digests) {
      const equal = digest.length === digestBytes && timingSafeEqual(digest, expected);
      if (equal && matched === null) matched = secret.id;
    }
  }
  if (liveSecrets === 0) return { reason: "no_secret" };
  return matched === null ? { reason: "no_match" } : { reason: "match", secretId: matched };
}

/** Whether a secret may verify at an instant; an invalid date on either side means it may not. */
export function isLive(secret: Pick<SigningSecret, "notBefore" | "notAfter">, now: Date): boolean {
  const instant = now.getTime();
  const begun = secret.notBefore === null || secret.notBefore.getTime() <= instant;
  const open = secret.notAfter === null || instant < secret.notAfter.getTime();
  return begun && open && !Number.isNaN(instant);
}
