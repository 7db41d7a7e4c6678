import {
  type SignatureScheme,
  type SignedRequest,
  type Verification,
  hmacSha256,
  isWithinTolerance,
  keyCache,
  matchSecret,
  maxSignatures,
  parseUnixSeconds,
  singleHeader,
  unixSeconds,
  utf8Key,
  wholeSecret,
} from "../verification.ts";

const svcKeyOf = keyCache(wholeSecret.derive);

/**
 * `SVC-Signature: t=<unix seconds>,v1=<lower-case hex>` over `<t>.<raw body>`, one `v1` for each secret during a
 * rotation. The interface does not document the format; this one is assumed.
 */
export const svcScheme: SignatureScheme<"svc"> = {
  name: "svc",
  key: wholeSecret,
  layout: {
    header: "SVC-Signature",
    notation: "hex",
    prefixes: ({ times }) => times.map((time) => `${time}.`),
  },

  verify(request: SignedRequest): Verification {
    const header = singleHeader(request.rawHeaders, "svc-signature");
    if (!header.ok) return header;
    const parsed = parseSvcHeader(header.value);
    if (parsed === null) return { ok: false, reason: "malformed_header" };

    const signedParts = [`${parsed.time}.`, request.body];
    const match = matchSecret(svcKeyOf, request, signedParts, parsed.digests);
    if (match.reason !== "match") return { ok: false, reason: match.reason };
    const { secretId } = match;
    return isWithinTolerance(parsed.seconds, request.now, request.toleranceSeconds)
      ? { ok: true, secretId }
      : { ok: false, reason: "stale", secretId };
  },

  sign({ body, secrets, at }) {
    const time = String(unixSeconds(at));
    const signatures = secrets.map((secret) => `v1=${hmacSha256(utf8Key(secret), [`${time}.`, body]).toString("hex")}`);
    return { "SVC-Signature": [`t=${time}`, ...signatures].join(",") };
  },
};

type SvcHeader = {
  /** Spelled as received, since these characters were signed. */
  time: string;
  seconds: number;
  digests: Buffer[];
};

/**
 * The parts may come in any order; unknown ones are ignored; there must be exactly one `t`. A `v1` that is not 64
 * lower-case hex digits is ignored; a header without any other is malformed.
 */
function parseSvcHeader(value: string): SvcHeader | null {
  let time: string | null = null;
  let signatures = 0;
  const digests: Buffer[] = [];
  for (const part of value.split(",")) {
    const text = part.trim();
    if (text.startsWith("t=")) {
      if (time !== null) return null;
      time = text.slice(2);
    } else if (text.startsWith("v1=")) {
      signatures += 1;
      if (signatures > maxSignatures) return null;
      if (/^[0-9a-f]{64}$/.test(text.slice(3))) digests.push(Buffer.from(text.slice(3), "hex"));
    }
  }
  const seconds = time === null ? null : parseUnixSeconds(time);
  if (time === null || seconds === null || digests.length === 0) return null;
  return { time, seconds, digests };
}
