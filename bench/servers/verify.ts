import { signatureScheme } from "../../src/core/contract/signature/signature-scheme.ts";
import type { SigningSecret } from "../../src/core/contract/signature/verification.ts";
import { benchSecret } from "../load/signed-request.ts";

const scheme = signatureScheme("svc");

export const benchSigningSecret: SigningSecret = {
  id: "bench",
  value: benchSecret,
  notBefore: null,
  notAfter: null,
};
const secrets = [benchSigningSecret];

/** Our own verification, the same for all compared servers. */
export function isAuthentic(rawHeaders: readonly string[], body: Buffer): boolean {
  return scheme.verify({ rawHeaders, body, secrets, now: new Date(), toleranceSeconds: 300 }).ok;
}

export const answer = { received: true, id: "not read", duplicate: false };
