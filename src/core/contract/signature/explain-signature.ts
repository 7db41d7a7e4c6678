import { type SignatureSchemeName, signatureScheme, signatureSchemes } from "./signature-scheme.ts";
import {
  type KeyForm,
  type Notation,
  type SignedRequest,
  type Verification,
  hmacSha256,
  isLive,
  parseUnixSeconds,
  secretProblem,
} from "./verification.ts";

export interface SignatureExplanation {
  /** The receiver's own decision about this request. */
  verification: Verification;
  /** Computations that yield the signature, the one with the fewest mistakes first. */
  matches: SignatureMatch[];
  /** Seconds since it was signed; negative when in the future; null when it gives no time. */
  ageSeconds: number | null;
  /** Sentences, the most important first. Holds no secret. */
  advice: string[];
}

/**
 * Explains why a captured request does or does not verify. Tries what the receiver never tries: every scheme, every
 * secret whether live or not, and common mistakes with a body, a key or a header. Only for people who hold a captured
 * request: the advice would help an attacker.
 */
export function explainSignature(request: SignedRequest, configured: SignatureSchemeName): SignatureExplanation {
  const claims = readClaims(request.rawHeaders);
  const verification = signatureScheme(configured).verify(request);
  const matches = findMatches(request, claims, configured);
  const signedAt = claims.times[0] === undefined ? null : parseUnixSeconds(claims.times[0]);
  const ageSeconds = signedAt === null ? null : Math.round(request.now.getTime() / 1000) - signedAt;
  const findings = { request, claims, configured, verification, matches, ageSeconds };
  return { verification, matches, ageSeconds, advice: adviseOn(findings) };
}

export interface SignatureFacts {
  request: SignedRequest;
  claims: SignatureClaims;
  configured: SignatureSchemeName;
  /** The result by the configured scheme. */
  verification: Verification;
  matches: readonly SignatureMatch[];
  ageSeconds: number | null;
}

/** Advice on a captured request, in sentences, the most important first. */
function adviseOn(findings: SignatureFacts): string[] {
  const { verification, configured, matches, claims } = findings;
  if (verification.ok) {
    return [`The request verifies: scheme ${configured}, secret ${verification.secretId}.`];
  }
  const [best] = matches;
  const advice = [...onHeaders(claims), ...onTime(findings)];
  if (best !== undefined) return [...onMatch(best, findings), ...advice];
  if (claims.digests.length > 0) advice.push(...onNoMatch(findings));
  return advice.length > 0 ? advice : ["The request does not verify, and no reason was found."];
}

function onMatch(match: SignatureMatch, { request, configured }: SignatureFacts): string[] {
  const scheme = signatureScheme(match.scheme);
  const secret = request.secrets.find(({ id }) => id === match.secretId);
  const advice = [`The secret ${match.secretId} made this signature, under the scheme ${match.scheme}.`];
  if (match.scheme !== configured) {
    advice.push(
      `SVC_SIGNATURE_SCHEME is ${configured}. If every request of the sender looks like this one, set it to ${match.scheme}.`,
    );
  }
  if (match.body !== "none") advice.push(bodyAdvice[match.body]);
  if (match.key !== scheme.key.form) advice.push(keyAdvice(match.key, match.scheme));
  if (match.notation !== scheme.layout.notation) advice.push(notationAdvice[match.notation]);
  if (secret !== undefined && !isLive(secret, request.now)) {
    advice.push(`The secret ${secret.id} is not live: ${windowOf(secret)}.`);
  }
  const problem = secret === undefined ? null : secretProblem(scheme, secret.value);
  if (problem !== null) advice.push(`The secret ${match.secretId} ${problem}, so it is never used.`);
  return advice;
}

const bodyAdvice: Readonly<Record<Exclude<BodyChange, "none">, string>> = {
  final_newline_added:
    "The captured body ends with a line break or space that was not signed: an editor or echo added it.",
  final_newline_removed:
    "What was signed ends with a line break that the captured body lacks: keep the bytes exactly as they arrive.",
  lf_to_crlf: "The captured body has CRLF where LF was signed: its line endings were converted.",
  crlf_to_lf: "The captured body has LF where CRLF was signed: its line endings were converted.",
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
  const wanted = signatureScheme(scheme).key.words;
  return `The sender's key is ${used[form]}; the scheme ${scheme} takes ${wanted}. Store the secret in the form that gives the same key, or correct the sender.`;
}

const notationAdvice: Readonly<Record<Notation, string>> = {
  hex: "The signature is written in hex; the scheme wants base64.",
  upper_case_hex: "The signature is written in upper-case hex; the scheme wants lower case.",
  base64: "The signature is written in base64; the scheme wants lower-case hex.",
};

function onHeaders({ signatureHeaders: found, digests, times }: SignatureClaims): string[] {
  if (found.length === 0) {
    return [
      `There is no ${signatureHeaders.join(" and no ")} header: the capture lacks it, a proxy drops it, or the sender does not sign.`,
    ];
  }
  const advice: string[] = [];
  const names = found.map(({ name }) => name);
  const repeated = names.find((name, index) => names.indexOf(name) !== index);
  if (repeated !== undefined) {
    advice.push(
      `The header ${repeated} occurs more than once, which the receiver refuses. Look for a proxy that adds it.`,
    );
  }
  if (digests.length === 0) {
    const isOtherHash = found.some(({ value }) =>
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

function onTime({ request, ageSeconds, verification }: SignatureFacts): string[] {
  const { toleranceSeconds } = request;
  if (ageSeconds === null || Math.abs(ageSeconds) <= toleranceSeconds) return [];
  const side = ageSeconds > 0 ? "before" : "after";
  const isRight = !verification.ok && verification.reason === "stale" ? "The signature is right, but it" : "It";
  return [
    `${isRight} was made ${Math.abs(ageSeconds)} s ${side} the time it is checked at; ${toleranceSeconds} s are allowed. ` +
      "For an old capture this is normal: check it at the time it was made (--at). Otherwise compare the clocks of both machines.",
  ];
}

function onNoMatch({ request }: SignatureFacts): string[] {
  if (request.secrets.length === 0) return ["No secret is known to compare with."];
  const ids = request.secrets.map(({ id }) => id).join(", ");
  return [
    `None of the known secrets made this signature over this body (tried: ${ids}). Either the endpoint at the service has ` +
      "another secret, or the body is not the one that was signed.",
  ];
}

function windowOf({ notBefore, notAfter }: SignedRequest["secrets"][number]): string {
  const begins = notBefore === null ? "" : `begins ${notBefore.toISOString()}`;
  const ends = notAfter === null ? "" : `ends ${notAfter.toISOString()}`;
  return [begins, ends].filter((text) => text !== "").join(", ");
}

/** The claims in the headers of a captured request, read as tolerantly as possible. */
export interface SignatureClaims {
  /** Every copy of the signature headers. */
  signatureHeaders: { name: string; value: string }[];
  digests: { bytes: Buffer; notation: Notation }[];
  times: string[];
  messageIds: string[];
}

const headersOf = (name: "header" | "timeHeader" | "idHeader"): string[] => [
  ...new Set(signatureSchemes.flatMap(({ layout }) => layout[name] ?? [])),
];

const signatureHeaders = headersOf("header");

function readClaims(rawHeaders: readonly string[]): SignatureClaims {
  const valuesOf = (name: string): string[] =>
    rawHeaders.flatMap((header, index) =>
      index % 2 === 0 && header.toLowerCase() === name ? [rawHeaders[index + 1] ?? ""] : [],
    );
  const found = signatureHeaders
    .map((name) => name.toLowerCase())
    .flatMap((name) => valuesOf(name).map((value) => ({ name, value })));
  const all = found.map(({ value }) => value);
  const timesInside = all.flatMap((value) =>
    [...value.matchAll(/(?:^|[,;\s])t=(\d{1,20})/g)].map(([, time = ""]) => time),
  );
  return {
    signatureHeaders: found,
    digests: all.flatMap(readDigests),
    times: [...new Set([...timesInside, ...headersOf("timeHeader").flatMap(valuesOf)])],
    messageIds: [...new Set(headersOf("idHeader").flatMap(valuesOf))],
  };
}

function readDigests(header: string): SignatureClaims["digests"] {
  const hex = [...header.matchAll(/(?<![0-9A-Za-z+/])[0-9a-fA-F]{64}(?![0-9A-Za-z+/=])/g)];
  const base64 = [...header.matchAll(/(?<![0-9A-Za-z+/_-])[0-9A-Za-z+/_-]{43}=/g)];
  return [
    ...hex.map(([text]) => ({
      bytes: Buffer.from(text, "hex"),
      notation: text === text.toLowerCase() ? ("hex" as const) : ("upper_case_hex" as const),
    })),
    ...base64.map(([text]) => ({
      bytes: Buffer.from(text, "base64"),
      notation: "base64" as const,
    })),
  ];
}

/** A computation that yields a signature the request carries. */
export interface SignatureMatch {
  scheme: SignatureSchemeName;
  secretId: string;
  body: BodyChange;
  key: KeyForm;
  notation: Notation;
}

/** Every computation that yields one of the claimed signatures, the one with the fewest mistakes first. */
function findMatches(
  { body, secrets }: Pick<SignedRequest, "body" | "secrets">,
  claims: SignatureClaims,
  configured: SignatureSchemeName,
): SignatureMatch[] {
  const matches: SignatureMatch[] = [];
  const bodies = bodyVariants(body);
  const layouts = layoutsOf(claims);
  for (const secret of secrets) {
    for (const { form, key } of keyVariants(secret.value)) {
      for (const { change, bytes } of bodies) {
        for (const { scheme, prefix } of layouts) {
          const digest = hmacSha256(key, [prefix, bytes]);
          const claimed = claims.digests.find((claim) => claim.bytes.equals(digest));
          if (claimed === undefined) continue;
          const { notation } = claimed;
          matches.push({ scheme, secretId: secret.id, body: change, key: form, notation });
        }
      }
    }
  }
  return matches.sort((a, b) => countMistakes(a, configured) - countMistakes(b, configured));
}

const layoutsOf = (claims: SignatureClaims): { scheme: SignatureSchemeName; prefix: string }[] =>
  signatureSchemes.flatMap(({ name, layout }) => layout.prefixes(claims).map((prefix) => ({ scheme: name, prefix })));

function countMistakes(match: SignatureMatch, configured: SignatureSchemeName): number {
  const { key, layout } = signatureScheme(match.scheme);
  return [
    match.scheme !== configured,
    match.body !== "none",
    match.key !== key.form,
    match.notation !== layout.notation,
  ].filter(Boolean).length;
}

/** Common changes to a body between the sender and the verifier. */
export type BodyChange =
  | "none"
  | "final_newline_added"
  | "final_newline_removed"
  | "lf_to_crlf"
  | "crlf_to_lf"
  | "bom_added"
  | "reserialised";

/**
 * The bodies that the sender may have signed, given the captured bytes; `change` says how the body changed on the way.
 */
function bodyVariants(body: Buffer): { change: BodyChange; bytes: Buffer }[] {
  const text = body.toString("latin1");
  const variants: { change: BodyChange; bytes: Buffer }[] = [{ change: "none", bytes: body }];
  const add = (change: BodyChange, signed: string | Buffer): void => {
    const bytes = typeof signed === "string" ? Buffer.from(signed, "latin1") : signed;
    if (!variants.some((variant) => variant.bytes.equals(bytes))) variants.push({ change, bytes });
  };
  add("final_newline_added", text.replace(/(\r?\n)$/, ""));
  add("final_newline_added", text.trimEnd());
  add("final_newline_removed", `${text}\n`);
  add("final_newline_removed", `${text}\r\n`);
  add("lf_to_crlf", text.replaceAll("\r\n", "\n"));
  add("crlf_to_lf", text.replaceAll(/\r?\n/g, "\r\n"));
  if (text.startsWith("\u00ef\u00bb\u00bf")) add("bom_added", text.slice(3));
  for (const json of jsonSpellings(body)) add("reserialised", Buffer.from(json, "utf8"));
  return variants;
}

function jsonSpellings(body: Buffer): string[] {
  let value: unknown;
  try {
    value = JSON.parse(body.toString("utf8").replace(/^\ufeff/, ""));
  } catch {
    return [];
  }
  const compact = JSON.stringify(value);
  const spaced = spacedJson(value);
  const spellings = [compact, spaced, JSON.stringify(value, null, 2), JSON.stringify(value, null, 4)];
  return [...spellings, escapeNonAscii(compact), escapeNonAscii(spaced)];
}

/** With a space after each comma and colon, as Python writes by default. */
function spacedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spacedJson).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, member]) => `${JSON.stringify(key)}: ${spacedJson(member)}`);
  return `{${members.join(", ")}}`;
}

function escapeNonAscii(json: string): string {
  return json.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** The keys that may have been made of a secret. */
function keyVariants(secret: string): { form: KeyForm; key: Buffer }[] {
  const bare = secret.startsWith("whsec_") ? secret.slice("whsec_".length) : secret;
  const variants: { form: KeyForm; key: Buffer }[] = [];
  const add = (form: KeyForm, key: Buffer): void => {
    if (key.length > 0 && !variants.some((variant) => variant.key.equals(key))) {
      variants.push({ form, key });
    }
  };
  add("whole", Buffer.from(secret, "utf8"));
  add("trimmed", Buffer.from(secret.trim(), "utf8"));
  add("without_prefix", Buffer.from(bare, "utf8"));
  if (/^[A-Za-z0-9+/_-]+={0,2}$/.test(bare)) add("base64", Buffer.from(bare, "base64"));
  if (/^([0-9a-fA-F]{2})+$/.test(bare)) add("hex", Buffer.from(bare, "hex"));
  add("with_newline", Buffer.from(`${secret}\n`, "utf8"));
  return variants;
}
