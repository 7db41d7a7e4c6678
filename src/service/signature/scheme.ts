/** What the signature schemes have in common. Which one is used is a setting, never a guess. */

export const signatureSchemeNames = ["svc", "hex", "standard-webhooks"] as const;

export type SignatureSchemeName = (typeof signatureSchemeNames)[number];

/** A secret that may verify signatures from `notBefore` (included) until `notAfter` (excluded). */
export interface SigningSecret {
  readonly id: string;
  readonly value: string;
  readonly notBefore: Date | null;
  readonly notAfter: Date | null;
}

/**
 * `stale`: the signature is right but its time is outside the window; `secretId` says whose it is.
 * `no_secret`: no secret is live and usable, so nothing could be verified.
 */
export type Verification =
  | { ok: true; secretId: string }
  | {
      ok: false;
      reason:
        | "missing_header"
        | "duplicate_header"
        | "malformed_header"
        | "no_match"
        | "stale"
        | "no_secret";
      secretId?: string;
    };

export interface SignedRequest {
  /** Names and values in turn, as `IncomingMessage.rawHeaders` has them: joined headers hide copies. */
  readonly rawHeaders: readonly string[];
  /** The bytes as received. */
  readonly body: Buffer;
  readonly secrets: readonly SigningSecret[];
  readonly now: Date;
  /** How far the signature's time may lie from `now`, both ways, in seconds, limits included. */
  readonly toleranceSeconds: number;
}

export interface SignatureScheme {
  readonly name: SignatureSchemeName;
  /** Never throws; takes the same time whichever secret matches, and whether one does. */
  verify(request: SignedRequest): Verification;
  /** The headers of a delivery signed with each of the secrets (the first is the newest). */
  sign(delivery: {
    body: Buffer;
    secrets: readonly string[];
    at: Date;
    messageId: string;
  }): Record<string, string>;
}
