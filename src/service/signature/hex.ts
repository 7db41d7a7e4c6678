import { hmacSha256, keyCache, utf8Key } from "./hmac-keys.ts";
import { matchSecret } from "./match-secret.ts";
import type { SignatureScheme, SignedRequest, Verification } from "./scheme.ts";
import { singleHeader } from "./single-header.ts";

const hexKeyOf = keyCache(utf8Key);

/**
 * `SVC-Signature: <lower-case hex>` over the raw body. It carries no time, so a replay cannot be
 * told by the signature, and one signature only, so a rotation needs both secrets live here.
 */
export const hexScheme: SignatureScheme = {
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
