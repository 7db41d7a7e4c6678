/** Stands where a secret was. */
export const redacted = "[redacted]";

/**
 * A text without what has the shape of a secret: service keys, signing secrets (spec: Authentication), and the
 * password of `user:password@` in URLs. The last resort, for texts that were not meant to hold one.
 */
export function strikeOutSecrets(text: string): string {
  return text
    .replace(/\bsvc_(live|test)_sk_[\w-]+/g, `svc_$1_sk_${redacted}`)
    .replace(/\bwhsec_[\w+/=-]+/g, `whsec_${redacted}`)
    .replace(/(\b[a-z][a-z0-9+.-]*:\/\/[^\s:@/"]*):[^\s"]+@/gi, `$1:${redacted}@`);
}
