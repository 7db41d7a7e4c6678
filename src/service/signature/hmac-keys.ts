import { createHmac, createSecretKey } from "node:crypto";
import type { KeyObject } from "node:crypto";

import type { SigningSecret } from "./scheme.ts";

/** Below this a key can be guessed; such a secret never verifies anything. */
export const minimumSecretBytes = 16;

/** How a scheme makes HMAC keys of secrets; null when the secret cannot be one. */
type DeriveKey = (secret: string) => Buffer | null;

/** The UTF-8 bytes of the whole secret, whatever its prefix. */
export function utf8Key(secret: string): Buffer {
  return Buffer.from(secret, "utf8");
}

/**
 * The key of a Standard Webhooks secret: base64 after an optional `whsec_`, with or without its padding. Null also
 * for a length that no bytes have: a character was lost on the way, and what is left would verify nothing.
 */
export function standardWebhooksKey(secret: string): Buffer | null {
  const encoded = secret.startsWith("whsec_") ? secret.slice("whsec_".length) : secret;
  const isWhole = /^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}(==)?|[A-Za-z0-9+/]{3}=?)?$/.test(encoded);
  if (encoded === "" || !isWhole) return null;
  return Buffer.from(encoded, "base64");
}

/** HMAC-SHA256 over the parts, one after the other; text counts as the bytes of its header. */
export function hmacSha256(key: Buffer | KeyObject, parts: readonly (string | Buffer)[]): Buffer {
  const hmac = createHmac("sha256", key);
  for (const part of parts) {
    if (typeof part === "string") hmac.update(part, "latin1");
    else hmac.update(part);
  }
  return hmac.digest();
}

/**
 * A lookup of the HMAC key of a secret that derives each key once. The keys are held as long as the
 * secrets themselves. Null for a secret that is too short or cannot be decoded.
 */
export function keyCache(deriveKey: DeriveKey): (secret: SigningSecret) => KeyObject | null {
  const keys = new WeakMap<SigningSecret, KeyObject | null>();
  return (secret) => {
    let key = keys.get(secret);
    if (key === undefined) {
      const bytes = deriveKey(secret.value);
      key = bytes === null || bytes.length < minimumSecretBytes ? null : createSecretKey(bytes);
      keys.set(secret, key);
    }
    return key;
  };
}
