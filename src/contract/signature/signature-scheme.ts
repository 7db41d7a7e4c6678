import {
  type SignatureScheme,
  type SignatureSchemeName,
  type SignedRequest,
  type Verification,
  hmacSha256,
  isWithinTolerance,
  keyCache,
  matchSecret,
  maxSignatures,
  parseUnixSeconds,
  singleHeader,
  standardWebhooksKey,
  unixSeconds,
  utf8Key,
} from "./verification.ts";

const svcKeyOf = keyCache(utf8Key);

/**
 * `SVC-Signature: t=<unix seconds>,v1=<lower-case hex>` over `<t>.<raw body>`, one `v1` for each secret during a
 * rotation. The interface does not document the format; this one is assumed.
 */
export const svcScheme: SignatureScheme = {
  name: "svc",

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
    const signatures = secrets.map(
      (secret) => `v1=${hmacSha256(utf8Key(secret), [`${time}.`, body]).toString("hex")}`,
    );
    return { "SVC-Signature": [`t=${time}`, ...signatures].join(",") };
  },
};

type SvcHeader = {
  /** As written, since these characters were signed. */
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

const hexKeyOf = keyCache(utf8Key);

/**
 * `SVC-Signature: <lower-case hex>` over the raw body. It carries no time, so the signature cannot reveal a replay. It
 * carries one signature only, so during a rotation both secrets must be live here.
 */
const hexScheme: SignatureScheme = {
  name: "hex",

  verify(request: SignedRequest): Verification {
    const header = singleHeader(request.rawHeaders, "svc-signature");
    if (!header.ok) return header;
    if (!/^[0-9a-f]{64}$/.test(header.value)) return { ok: false, reason: "malformed_header" };

    const digest = Buffer.from(header.value, "hex");
    const match = matchSecret(hexKeyOf, request, [request.body], [digest]);
    return match.reason === "match"
      ? { ok: true, secretId: match.secretId }
      : { ok: false, reason: match.reason };
  },

  sign({ body, secrets }): Record<string, string> {
    const newest = secrets[0];
    if (newest === undefined) return {};
    return { "SVC-Signature": hmacSha256(utf8Key(newest), [body]).toString("hex") };
  },
};

const standardKeyOf = keyCache(standardWebhooksKey);

/**
 * The Standard Webhooks headers `webhook-id`, `webhook-timestamp` and `webhook-signature` (`v1,<base64>` items
 * separated by spaces) over `<id>.<timestamp>.<raw body>`. The key is the base64 text after `whsec_`.
 *
 * Source: Standard Webhooks specification 1.0.0, "Signature scheme" and "Webhook headers".
 */
export const standardWebhooksScheme: SignatureScheme = {
  name: "standard-webhooks",

  verify(request: SignedRequest): Verification {
    const id = singleHeader(request.rawHeaders, "webhook-id");
    if (!id.ok) return id;
    const timestamp = singleHeader(request.rawHeaders, "webhook-timestamp");
    if (!timestamp.ok) return timestamp;
    const signature = singleHeader(request.rawHeaders, "webhook-signature");
    if (!signature.ok) return signature;

    const seconds = parseUnixSeconds(timestamp.value);
    const digests = parseSignatures(signature.value);
    if (seconds === null || digests === null) return { ok: false, reason: "malformed_header" };

    const signedParts = [`${id.value}.${timestamp.value}.`, request.body];
    const match = matchSecret(standardKeyOf, request, signedParts, digests);
    if (match.reason !== "match") return { ok: false, reason: match.reason };
    const { secretId } = match;
    return isWithinTolerance(seconds, request.now, request.toleranceSeconds)
      ? { ok: true, secretId }
      : { ok: false, reason: "stale", secretId };
  },

  sign({ body, secrets, at, messageId }) {
    const time = String(unixSeconds(at));
    const signatures = secrets.map((secret) => {
      const key = standardWebhooksKey(secret) ?? utf8Key(secret);
      return `v1,${hmacSha256(key, [`${messageId}.${time}.`, body]).toString("base64")}`;
    });
    return {
      "webhook-id": messageId,
      "webhook-timestamp": time,
      "webhook-signature": signatures.join(" "),
    };
  },
};

/** Other versions, such as the asymmetric `v1a`, are ignored; a header without any `v1` is malformed. */
function parseSignatures(value: string): Buffer[] | null {
  let signatures = 0;
  const digests: Buffer[] = [];
  for (const part of value.split(" ")) {
    if (!part.startsWith("v1,")) continue;
    signatures += 1;
    if (signatures > maxSignatures) return null;
    if (/^[A-Za-z0-9+/]{43}=$/.test(part.slice(3)))
      digests.push(Buffer.from(part.slice(3), "base64"));
  }
  return digests.length === 0 ? null : digests;
}

const schemes: Readonly<Record<SignatureSchemeName, SignatureScheme>> = {
  svc: svcScheme,
  hex: hexScheme,
  "standard-webhooks": standardWebhooksScheme,
};

/** The scheme of that name (`SVC_SIGNATURE_SCHEME`). */
export function signatureScheme(name: SignatureSchemeName): SignatureScheme {
  return schemes[name];
}
