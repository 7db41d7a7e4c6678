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
  standardWebhooksKey,
  unixSeconds,
  utf8Key,
  base64Secret,
} from "../verification.ts";

const standardKeyOf = keyCache(base64Secret.derive);

/**
 * The Standard Webhooks headers `webhook-id`, `webhook-timestamp` and `webhook-signature` (`v1,<base64>` items
 * separated by spaces) over `<id>.<timestamp>.<raw body>`. The key is the base64 text after `whsec_`.
 *
 * Source: Standard Webhooks specification 1.0.0, "Signature scheme" and "Webhook headers".
 */
export const standardWebhooksScheme: SignatureScheme<"standard-webhooks"> = {
  name: "standard-webhooks",
  key: base64Secret,
  layout: {
    header: "webhook-signature",
    timeHeader: "webhook-timestamp",
    idHeader: "webhook-id",
    notation: "base64",
    prefixes: ({ times, messageIds }) => messageIds.flatMap((id) => times.map((time) => `${id}.${time}.`)),
  },

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
    if (/^[A-Za-z0-9+/]{43}=$/.test(part.slice(3))) digests.push(Buffer.from(part.slice(3), "base64"));
  }
  return digests.length === 0 ? null : digests;
}
