import { minimumSecretBytes, standardWebhooksKey, utf8Key } from "./hmac-keys.ts";
import type { SignatureSchemeName } from "./scheme.ts";

/**
 * Why a text cannot be a signing secret under a scheme, as the rest of a sentence, or null when it
 * can. Never contains the secret.
 */
export function secretProblem(scheme: SignatureSchemeName, value: string): string | null {
  if (value === "") return "is empty";
  if (/\s/.test(value)) return "contains white space";
  if (/^(["']).*\1$/.test(value)) return "is in quotation marks, which would be part of it";
  const key = scheme === "standard-webhooks" ? standardWebhooksKey(value) : utf8Key(value);
  if (key === null) return "is not base64 after whsec_, as the standard-webhooks scheme needs";
  if (key.length < minimumSecretBytes) {
    return `has ${key.length} bytes; at least ${minimumSecretBytes} are needed`;
  }
  return null;
}
