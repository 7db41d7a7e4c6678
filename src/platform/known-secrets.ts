/** Stands where a secret was. */
export const redacted = "[redacted]";

/** A shorter value would be found in half of all texts. */
const minLength = 8;
/** A password that is a plain word cannot be told from the word itself; `strikeOutSecrets` still finds it in its URL. */
const plainWord = /^[a-z]{1,15}$/i;
/** The oldest is forgotten. Far more than one process has: secrets that are replaced come on top. */
const maxSecrets = 500;

/** By secret, every form in which it is looked for. */
const known = new Map<string, readonly string[]>();
let longestFirst: readonly string[] | null = null;

/**
 * Notes a secret that this process holds, so that no log line and no message of an error shows it, whoever
 * echoes it. Of a URL with a password, that password; of a page's address without one, all of it. Idempotent.
 */
export function knowSecret(secret: string): void {
  for (const value of valuesIn(secret)) {
    if (value.length < minLength || plainWord.test(value) || known.has(value)) continue;
    known.set(value, formsOf(value));
    const [oldest] = known.keys();
    if (known.size > maxSecrets && oldest !== undefined) known.delete(oldest);
    longestFirst = null;
  }
}

/** The text without the secrets that this process holds, as they are or encoded. Takes time in proportion to the text. */
export function strikeOutKnownSecrets(text: string): string {
  longestFirst ??= [...new Set([...known.values()].flat())].sort((a, b) => b.length - a.length);
  let struck = text;
  for (const form of longestFirst) {
    if (struck.includes(form)) struck = struck.replaceAll(form, redacted);
  }
  return struck;
}

function valuesIn(secret: string): string[] {
  // What comes before the key of a signing secret is no part of it.
  const bare = secret.startsWith("whsec_") ? [secret.slice("whsec_".length)] : [];
  if (!secret.includes("://") || !URL.canParse(secret)) return [secret, ...bare];
  const { protocol, username, password, hostname, pathname, search } = new URL(secret);
  // A chat's address is its own secret; where a database is, is none.
  if (password === "") return /^https?:$/.test(protocol) ? [secret, pathname + search] : [];
  const decoded = decodedOrSame(password);
  const others = [username, hostname, pathname.slice(1)].map(decodedOrSame);
  return others.includes(decoded) ? [] : [password, decoded];
}

function decodedOrSame(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function formsOf(value: string): string[] {
  const bytes = Buffer.from(value);
  const percent = encodeURIComponent(value);
  const base64 = [0, 1, 2].map((before) => insideBase64(bytes, before));
  const url = base64.map((form) => form.replaceAll("+", "-").replaceAll("/", "_"));
  const forms = [
    value,
    JSON.stringify(value).slice(1, -1),
    percent,
    percent.replaceAll(/%[0-9A-F]{2}/g, (each) => each.toLowerCase()),
    bytes.toString("hex"),
    bytes.toString("hex").toUpperCase(),
    ...base64,
    ...base64.map(encodeURIComponent),
    ...url,
  ];
  return [...new Set(forms)].filter((form) => form.length >= minLength);
}

/**
 * The characters of a longer text's base64 that this value alone decides, where it begins `before` bytes after a
 * whole group of three: a password stands in Basic authentication behind its user's name.
 */
function insideBase64(bytes: Buffer, before: number): string {
  const text = Buffer.concat([Buffer.alloc(before), bytes]).toString("base64");
  return text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6));
}
