import { adviseOn } from "./explain-advice.ts";
import { readClaims } from "./explain-claims.ts";
import { findMatches } from "./explain-match.ts";
import type { SignatureMatch } from "./explain-match.ts";
import type { SignatureSchemeName, SignedRequest, Verification } from "./scheme.ts";
import { signatureScheme } from "./signature-scheme.ts";
import { parseUnixSeconds } from "./signed-time.ts";

export interface SignatureExplanation {
  /** What the receiver says to this request. */
  verification: Verification;
  /** Ways to arrive at the signature, the one with the fewest mistakes first. */
  matches: SignatureMatch[];
  /** How long ago it was signed, in seconds; negative when in the future; null when it does not say. */
  ageSeconds: number | null;
  /** In sentences, the most important first. Holds no secret. */
  advice: string[];
}

/**
 * Why a captured request does or does not verify. Tries what the receiver never tries: every scheme, every
 * secret whether live or not, and common ways to spoil a body, a key or a header. For people with a captured
 * request only: its answers would help an attacker.
 */
export function explainSignature(
  request: SignedRequest,
  configured: SignatureSchemeName,
): SignatureExplanation {
  const claims = readClaims(request.rawHeaders);
  const verification = signatureScheme(configured).verify(request);
  const matches = findMatches(request, claims, configured);
  const signedAt = claims.times[0] === undefined ? null : parseUnixSeconds(claims.times[0]);
  const ageSeconds = signedAt === null ? null : Math.round(request.now.getTime() / 1000) - signedAt;
  const findings = { request, claims, configured, verification, matches, ageSeconds };
  return { verification, matches, ageSeconds, advice: adviseOn(findings) };
}
