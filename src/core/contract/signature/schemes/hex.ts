import {
  type SignatureScheme,
  type SignedRequest,
  type Verification,
  hmacSha256,
  keyCache,
  matchSecret,
  singleHeader,
  utf8Key,
  wholeSecret,
} from "../verification.ts";

const hexKeyOf = keyCache(wholeSecret.derive);

/**
 * `SVC-Signature: <lower-case hex>` over the raw body. It carries no time, so the signature cannot reveal a replay. It
 * carries one signature only, so during a rotation both secrets must be live here.
 */
export const hexScheme: SignatureScheme<"hex"> = {
  name: "hex",
  key: wholeSecret,
  layout: { header: "SVC-Signature", notation: "hex", prefixes: () => [""] },

  verify(request: SignedRequest): Verification {
    const header = singleHeader(request.rawHeaders, "svc-signature");
    if (!header.ok) return header;
    if (!/^[0-9a-f]{64}$/.test(header.value)) return { ok: false, reason: "malformed_header" };

    const digest = Buffer.from(header.value, "hex");
    const match = matchSecret(hexKeyOf, request, [request.body], [digest]);
    return match.reason === "match" ? { ok: true, secretId: match.secretId } : { ok: false, reason: match.reason };
  },

  sign({ body, secrets }): Record<string, string> {
    const newest = secrets[0];
    if (newest === undefined) return {};
    return { "SVC-Signature": hmacSha256(utf8Key(newest), [body]).toString("hex") };
  },
};
