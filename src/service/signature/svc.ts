import { hmacSha256, keyCache, utf8Key } from "./hmac-keys.ts";
import { matchSecret, maxSignatures } from "./match-secret.ts";
import type { SignatureScheme, SignedRequest, Verification } from "./scheme.ts";
import { isWithinTolerance, parseUnixSeconds, unixSeconds } from "./signed-time.ts";
import { singleHeader } from "./single-header.ts";

const svcKeyOf = keyCache(utf8Key);

/**
 * `SVC-Signature: t=<unix seconds>,v1=<lower-case hex>` over `<t>.<raw body>`, one `v1` for each
 * secret during a rotation. The spec does not show the format; this one is assumed.
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
 * Parts in any order, unknown ones ignored, exactly one `t`. A `v1` that is not 64 lower-case hex
 * digits counts as none; a header without any is malformed.
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
