import { hexScheme } from "./schemes/hex.ts";
import { standardWebhooksScheme } from "./schemes/standard-webhooks.ts";
import { svcScheme } from "./schemes/svc.ts";
import type { SignatureScheme } from "./verification.ts";

/** Every scheme, a file each. Which one is used is a setting, never a guess. */
const schemes = [svcScheme, hexScheme, standardWebhooksScheme] as const;

export type SignatureSchemeName = (typeof schemes)[number]["name"];

export const signatureSchemes: readonly SignatureScheme<SignatureSchemeName>[] = schemes;

export const signatureSchemeNames: readonly SignatureSchemeName[] = schemes.map(({ name }) => name);

/** The scheme of that name (`SVC_SIGNATURE_SCHEME`). */
export function signatureScheme(name: SignatureSchemeName): SignatureScheme<SignatureSchemeName> {
  const found = signatureSchemes.find((scheme) => scheme.name === name);
  if (found === undefined) throw new TypeError(`no signature scheme is named ${name}`);
  return found;
}
