import { redacted, strikeOutKnownSecrets } from "./known-secrets.ts";

/**
 * A text without secrets: those that this process holds, by their value, and what has the shape of one. Shapes are service
 * keys and signing secrets (spec: Authentication), the password of `user:password@` in URLs, and what follows `Bearer`
 * or `Basic`. The last resort, for texts that were not meant to hold one. Pure but for the known secrets; idempotent;
 * takes time in proportion to the text, whatever the text is.
 */
export function strikeOutSecrets(text: string): string {
  return withoutPasswords(strikeOutKnownSecrets(text))
    .replace(/\b(Bearer) {1,4}[\w.~+/=%-]{8,}/gi, `$1 ${redacted}`)
    .replace(/svc_(live|test)_sk_[\w-]+/g, `svc_$1_sk_${redacted}`)
    .replace(/whsec_[\w+/=%-]+/g, `whsec_${redacted}`)
    .replace(/\b(Basic) {1,4}([\w+/=%-]{8,})/gi, (all, name: string, credentials: string) =>
      Buffer.from(credentials, "base64").includes(":") ? `${name} ${redacted}` : all,
    );
}

/**
 * The same, on one line of at most `maxCharacters`, for what a server answered and people will read. What is cut off is
 * cut after the secrets are struck out, so that no half of one stays.
 */
export function foreignText(text: string, maxCharacters: number): string {
  const line = strikeOutSecrets(text).replaceAll(/\p{Cc}+/gu, " ");
  return line.length <= maxCharacters ? line : `${cutAt(line, maxCharacters)}…`;
}

/** The beginning of a text, without half a character at its end, which no database takes. */
export const cutAt = (text: string, maxCharacters: number): string =>
  text.slice(0, maxCharacters).replace(/[\uD800-\uDBFF]$/, "");

/**
 * Of each URL, what stands between the first colon after `://` and the last `@` before a blank or a quotation mark. A
 * password may hold slashes and at signs of its own. A URL without one may hold another URL, as a proxy's does. Looks at
 * each character a few times: an expression for this begins anew at every letter, and takes seconds for a long text.
 */
function withoutPasswords(text: string): string {
  let struck = "";
  let from = 0;
  let [end, atSign] = [0, -1];
  for (let at = text.indexOf("://"); at >= 0; at = text.indexOf("://", at)) {
    const begin = at + 3;
    if (begin > end) {
      urlEnd.lastIndex = begin;
      end = urlEnd.test(text) ? urlEnd.lastIndex - 1 : text.length;
      atSign = begin + text.slice(begin, end).lastIndexOf("@");
    }
    const colon = text.indexOf(":", begin);
    const isPassword = colon >= 0 && colon < atSign && !text.slice(begin, colon).includes("/");
    if (isPassword && text.slice(colon + 1, atSign) !== example) {
      struck += `${text.slice(from, colon)}:${redacted}`;
      from = atSign;
    }
    at = isPassword ? end : begin;
  }
  return struck + text.slice(from);
}

const urlEnd = /[\s"]/g;
/** What messages of our own write in its place. */
const example = "password";
