import type { Claims, Notation } from "./explain-claims.ts";
import { expectedForms } from "./explain-match.ts";
import type { SignatureMatch } from "./explain-match.ts";
import type { BodyChange, KeyForm } from "./explain-variants.ts";
import { isLive } from "./match-secret.ts";
import type { SignatureSchemeName, SignedRequest, Verification } from "./scheme.ts";
import { secretProblem } from "./secret-problem.ts";

export interface Findings {
  request: SignedRequest;
  claims: Claims;
  configured: SignatureSchemeName;
  /** By the configured scheme. */
  verification: Verification;
  matches: readonly SignatureMatch[];
  ageSeconds: number | null;
}

/** What to do about a captured request, in sentences, the most important first. */
export function adviseOn(findings: Findings): string[] {
  const { verification, configured, matches, claims } = findings;
  if (verification.ok) {
    return [`The request verifies: scheme ${configured}, secret ${verification.secretId}.`];
  }
  const [best] = matches;
  const advice = [...onHeaders(claims), ...onTime(findings)];
  if (best !== undefined) return [...onMatch(best, findings), ...advice];
  if (claims.digests.length > 0) advice.push(...onNoMatch(findings));
  return advice.length > 0 ? advice : ["The request does not verify, and nothing explains why."];
}

function onMatch(match: SignatureMatch, { request, configured }: Findings): string[] {
  const expected = expectedForms[match.scheme];
  const secret = request.secrets.find(({ id }) => id === match.secretId);
  const advice = [
    `The secret ${match.secretId} made this signature, under the scheme ${match.scheme}.`,
  ];
  if (match.scheme !== configured) {
    advice.push(
      `SVC_SIGNATURE_SCHEME is ${configured}. If every request of the sender looks like this one, set it to ${match.scheme}.`,
    );
  }
  if (match.body !== "none") advice.push(bodyAdvice[match.body]);
  if (match.key !== expected.key) advice.push(keyAdvice(match.key, match.scheme));
  if (match.notation !== expected.notation) advice.push(notationAdvice[match.notation]);
  if (secret !== undefined && !isLive(secret, request.now)) {
    advice.push(`The secret ${secret.id} is not live: ${windowOf(secret)}.`);
  }
  const problem = secret === undefined ? null : secretProblem(match.scheme, secret.value);
  if (problem !== null)
    advice.push(`The secret ${match.secretId} ${problem}, so it is never used.`);
  return advice;
}

const bodyAdvice: Readonly<Record<Exclude<BodyChange, "none">, string>> = {
  final_newline_added:
    "The captured body ends with a line break or space that was not signed: an editor or echo added it.",
  final_newline_removed:
    "What was signed ends with a line break that the captured body lacks: keep the bytes as they come.",
  lf_to_crlf: "The captured body has CRLF where LF was signed: its line ends were converted.",
  crlf_to_lf: "The captured body has LF where CRLF was signed: its line ends were converted.",
  bom_added: "The captured body begins with a byte order mark that was not signed.",
  reserialised:
    "The captured body is the signed one parsed and written again, with other white space or escapes. Check the raw bytes, before any JSON parser or proxy rewrites them.",
};

function keyAdvice(form: KeyForm, scheme: SignatureSchemeName): string {
  const used: Readonly<Record<KeyForm, string>> = {
    whole: "the whole text of the secret",
    trimmed: "the secret without the white space around it",
    without_prefix: "the text of the secret without whsec_",
    base64: "the base64-decoded secret",
    hex: "the hex-decoded secret",
    with_newline: "the secret with a line break at its end",
  };
  const wanted =
    scheme === "standard-webhooks"
      ? "the base64-decoded text after whsec_"
      : "the UTF-8 of the whole secret, whsec_ included";
  return `The sender's key is ${used[form]}; the scheme ${scheme} takes ${wanted}. Store the secret in the form that gives the same key, or correct the sender.`;
}

const notationAdvice: Readonly<Record<Notation, string>> = {
  hex: "The signature is written in hex; the scheme wants base64.",
  upper_case_hex: "The signature is written in upper-case hex; the scheme wants lower case.",
  base64: "The signature is written in base64; the scheme wants lower-case hex.",
};

function onHeaders({ signatureHeaders, digests, times }: Claims): string[] {
  if (signatureHeaders.length === 0) {
    return [
      "There is no SVC-Signature and no webhook-signature header: the capture lacks it, a proxy drops it, or the sender does not sign.",
    ];
  }
  const advice: string[] = [];
  const names = signatureHeaders.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) {
    advice.push(
      `The header ${twice} is there more than once; the receiver refuses that. Look for a proxy that adds it.`,
    );
  }
  if (digests.length === 0) {
    const isOtherHash = signatureHeaders.some(({ value }) =>
      /(?<![0-9a-f])([0-9a-f]{40}|[0-9a-f]{96}|[0-9a-f]{128})(?![0-9a-f])/i.test(value),
    );
    advice.push(
      isOtherHash
        ? "The signature has the length of SHA-1, SHA-384 or SHA-512; only HMAC-SHA256 is used."
        : "The header holds no HMAC-SHA256: neither 64 hex digits nor 44 characters of base64.",
    );
  }
  if (times.some((time) => time.length >= 13)) {
    advice.push("The time of the signature looks like milliseconds; it must be whole seconds.");
  }
  return advice;
}

function onTime({ request, ageSeconds, verification }: Findings): string[] {
  const { toleranceSeconds } = request;
  if (ageSeconds === null || Math.abs(ageSeconds) <= toleranceSeconds) return [];
  const side = ageSeconds > 0 ? "before" : "after";
  const isRight =
    !verification.ok && verification.reason === "stale" ? "The signature is right, but it" : "It";
  return [
    `${isRight} was made ${Math.abs(ageSeconds)} s ${side} the time it is checked at; ${toleranceSeconds} s are allowed. ` +
      "For an old capture that is as it should be (check it at its own time); else compare the clocks of both machines.",
  ];
}

function onNoMatch({ request }: Findings): string[] {
  if (request.secrets.length === 0) return ["No secret is known here to compare with."];
  const ids = request.secrets.map(({ id }) => id).join(", ");
  return [
    `None of the known secrets made this signature over this body (tried: ${ids}). Either the endpoint at the service has another secret, ` +
      "or the body is not the one that was signed.",
  ];
}

function windowOf({ notBefore, notAfter }: SignedRequest["secrets"][number]): string {
  const begins = notBefore === null ? "" : `begins ${notBefore.toISOString()}`;
  const ends = notAfter === null ? "" : `ends ${notAfter.toISOString()}`;
  return [begins, ends].filter((text) => text !== "").join(", ");
}
