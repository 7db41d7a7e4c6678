import { type KeyObject, createHmac, createSecretKey, timingSafeEqual } from "node:crypto";

// Shared by the signature schemes.

/** A secret that may verify signatures from `notBefore` (included) until `notAfter` (excluded). */
export interface SigningSecret {
  readonly id: string;
  readonly value: string;
  readonly notBefore: Date | null;
  readonly notAfter: Date | null;
}

/**
 * `stale`: the signature is right but expired, its time outside the window; `secretId` names the secret. `no_secret`:
 * no secret is live and usable, so nothing could be verified.
 */
export type Verification =
  | { ok: true; secretId: string }
  | {
      ok: false;
      reason: "missing_header" | "duplicate_header" | "malformed_header" | "no_match" | "stale" | "no_secret";
      secretId?: string;
    };

export interface SignedRequest {
  /** Names and values in turn, as `IncomingMessage.rawHeaders` has them: joined headers hide copies. */
  readonly rawHeaders: readonly string[];
  /** The bytes as received. */
  readonly body: Buffer;
  readonly secrets: readonly SigningSecret[];
  readonly now: Date;
  /** The allowed distance between the signature's time and `now`, both ways, in seconds, limits included. */
  readonly toleranceSeconds: number;
}

/** Everything about one scheme. A scheme is one file, listed in `signature-scheme.ts`. */
export interface SignatureScheme<Name extends string = string> {
  /** The value of SVC_SIGNATURE_SCHEME. */
  readonly name: Name;
  readonly key: KeyRule;
  /** Shown to a person with a captured request (`tallyhook signature explain`). */
  readonly layout: {
    /** The header with the signatures. */
    readonly header: string;
    /** Headers with the time of signing and the message's id, in lower case. */
    readonly timeHeader?: string;
    readonly idHeader?: string;
    readonly notation: Notation;
    /** The bytes that may have been signed before the body, according to the headers. */
    prefixes(claims: { times: readonly string[]; messageIds: readonly string[] }): string[];
  };
  /** Never throws; takes the same time whichever secret matches, and whether one does. */
  verify(request: SignedRequest): Verification;
  /** The headers of a delivery signed with each of the secrets (the first is the newest). */
  sign(delivery: { body: Buffer; secrets: readonly string[]; at: Date; messageId: string }): Record<string, string>;
}

export type Notation = "hex" | "upper_case_hex" | "base64";

/** Forms that a secret may be turned into. */
export type KeyForm = "whole" | "without_prefix" | "base64" | "hex" | "with_newline" | "trimmed";

/** A scheme's rule for making HMAC keys of secrets. */
interface KeyRule {
  readonly form: KeyForm;
  /** The form in words. */
  readonly words: string;
  /** Null when the secret cannot be a key. */
  derive(this: void, secret: string): Buffer | null;
  /** The reason for a refusal, as the rest of a sentence. */
  readonly problem: string;
}

const digestBytes = 32;

/** More signatures than any rotation needs. A header with more is refused before any HMAC is computed. */
export const maxSignatures = 16;

type Match = { reason: "match"; secretId: string } | { reason: "no_match" | "no_secret" };

/**
 * Finds the live secret that made one of the given signatures over the signed parts. Every live secret is tried against
 * every signature, also after a match, so that the time taken does not reveal which one matched.
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

/** Below this a key can be guessed; such a secret never verifies anything. */
const minimumSecretBytes = 16;

/** The UTF-8 bytes of the whole secret, whatever its prefix. */
export function utf8Key(secret: string): Buffer {
  return Buffer.from(secret, "utf8");
}

/**
 * The key of a Standard Webhooks secret: base64 after an optional `whsec_`, with or without its padding. Null also for
 * a length that no bytes have: a character was lost, and the rest would verify nothing.
 */
export function standardWebhooksKey(secret: string): Buffer | null {
  const encoded = secret.startsWith("whsec_") ? secret.slice("whsec_".length) : secret;
  const isWhole = /^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}(==)?|[A-Za-z0-9+/]{3}=?)?$/.test(encoded);
  if (encoded === "" || !isWhole) return null;
  return Buffer.from(encoded, "base64");
}

export const wholeSecret: KeyRule = {
  form: "whole",
  words: "the UTF-8 of the whole secret, whsec_ included",
  derive: utf8Key,
  problem: "cannot be a key",
};

export const base64Secret: KeyRule = {
  form: "base64",
  words: "the base64-decoded text after whsec_",
  derive: standardWebhooksKey,
  problem: "is not base64 after whsec_, as the standard-webhooks scheme needs",
};

/** HMAC-SHA256 over the parts in turn. Text comes from headers, whose bytes Node decodes as Latin-1. */
export function hmacSha256(key: Buffer | KeyObject, parts: readonly (string | Buffer)[]): Buffer {
  const hmac = createHmac("sha256", key);
  for (const part of parts) {
    if (typeof part === "string") hmac.update(part, "latin1");
    else hmac.update(part);
  }
  return hmac.digest();
}

/**
 * A lookup of the HMAC key of a secret that derives each key once and keeps it as long as the secret object. Null for a
 * secret that is too short or cannot be decoded.
 */
export function keyCache(deriveKey: KeyRule["derive"]): (secret: SigningSecret) => KeyObject | null {
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

/** Longer values are refused unread, which bounds the work for an unauthenticated request. */
const maxHeaderLength = 8192;

type HeaderValue =
  | { ok: true; value: string }
  | { ok: false; reason: "missing_header" | "duplicate_header" | "malformed_header" };

/**
 * The value of a header that must be there exactly once. Two copies are refused, even equal ones: other software on the
 * way may have read either.
 *
 * @param name in lower case
 */
export function singleHeader(rawHeaders: readonly string[], name: string): HeaderValue {
  let value: string | undefined;
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const candidate = rawHeaders[index] ?? "";
    if (candidate.length !== name.length || candidate.toLowerCase() !== name) continue;
    if (value !== undefined) return { ok: false, reason: "duplicate_header" };
    value = rawHeaders[index + 1] ?? "";
  }
  if (value === undefined) return { ok: false, reason: "missing_header" };
  if (value === "" || value.length > maxHeaderLength) {
    return { ok: false, reason: "malformed_header" };
  }
  return { ok: true, value };
}

/** Whole seconds since 1970 in decimal digits, or null: no sign, no fraction, no trailing text. */
export function parseUnixSeconds(text: string): number | null {
  return /^\d{1,12}$/.test(text) ? Number(text) : null;
}

export function unixSeconds(at: Date): number {
  return Math.floor(at.getTime() / 1000);
}

/**
 * Whether a signature's time is near enough to now, before or after. False for an invalid date or tolerance: what
 * cannot be compared counts as expired.
 */
export function isWithinTolerance(signedAt: number, now: Date, toleranceSeconds: number): boolean {
  return Math.abs(now.getTime() - signedAt * 1000) <= toleranceSeconds * 1000;
}

/**
 * Why a text cannot be a signing secret under a scheme, as the rest of a sentence, or null when it can. Never contains
 * the secret.
 */
export function secretProblem({ key: rule }: Pick<SignatureScheme, "key">, value: string): string | null {
  if (value === "") return "is empty";
  if (/\s/.test(value)) return "contains white space";
  if (/^(["']).*\1$/.test(value)) return "is in quotation marks, which would be part of it";
  if (value.startsWith("v1,whsec_")) return 'begins with "v1,", which is no part of it: leave it out';
  const key = rule.derive(value);
  if (key === null) return rule.problem;
  if (key.length < minimumSecretBytes) {
    return `has ${key.length} bytes; at least ${minimumSecretBytes} are needed`;
  }
  return null;
}
