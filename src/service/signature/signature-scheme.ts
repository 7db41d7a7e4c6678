import { hexScheme } from "./hex.ts";
import type { SignatureScheme, SignatureSchemeName } from "./scheme.ts";
import { standardWebhooksScheme } from "./standard-webhooks.ts";
import { svcScheme } from "./svc.ts";

const schemes: Readonly<Record<SignatureSchemeName, SignatureScheme>> = {
  svc: svcScheme,
  hex: hexScheme,
  "standard-webhooks": standardWebhooksScheme,
};

/** The scheme of that name (`SVC_SIGNATURE_SCHEME`). */
export function signatureScheme(name: SignatureSchemeName): SignatureScheme {
  return schemes[name];
}
