import { inspect } from "node:util";

const shown = "[secret]";

/**
 * A frozen object whose values can only be read by name: it cannot be printed, turned into JSON (so not logged),
 * listed, spread or copied by accident. Its texts are removed from every log line (`registerSecret`).
 */
export function redact<T extends object>(values: T): Readonly<T> {
  const guarded: object = {};
  for (const [name, value] of Object.entries(values)) {
    for (const each of Array.isArray(value) ? (value as unknown[]) : [value]) {
      if (typeof each === "string") registerSecret(each);
    }
    if (Array.isArray(value)) Object.freeze(value);
    Object.defineProperty(guarded, name, { value, enumerable: false });
  }
  for (const name of ["toString", "toJSON", inspect.custom]) {
    Object.defineProperty(guarded, name, { value: () => shown, enumerable: false });
  }
  return Object.freeze(guarded) as Readonly<T>;
}

/** Replaces a removed part of a text: a secret, or personal data. */
export const redacted = "[redacted]";

/** A shorter value would occur by chance in too many texts. */
const minLength = 8;
/** A password that is a plain word may occur in any text; `redactSecrets` still finds it in its URL. */
const plainWord = /^[a-z]{1,15}$/i;
/** Beyond this the oldest is forgotten. Far more than one process holds, even after many rotations. */
const maxSecrets = 500;

/** For each secret, every form that is searched for. */
const known = new Map<string, readonly string[]>();
let longestFirst: readonly string[] | null = null;

/**
 * Registers a secret that this process holds, so that no log line and no error message shows it, even if another
 * program echoes it. Registers only the passwords of a URL, and all of a web address that has none. Idempotent.
 */
export function registerSecret(secret: string): void {
  for (const value of valuesIn(secret)) {
    if (value.length < minLength || plainWord.test(value) || known.has(value)) continue;
    known.set(value, formsOf(value));
    const [oldest] = known.keys();
    if (known.size > maxSecrets && oldest !== undefined) known.delete(oldest);
    longestFirst = null;
  }
}

let shapes: readonly RegExp[] = [];

/**
 * Registers the shapes of this program's secrets. Each expression is global; its group is the prefix that may be shown.
 * Call it once, before anything is logged.
 */
export function registerSecretShapes(of: readonly RegExp[]): void {
  shapes = of;
}

/** The text without this process's secrets, plain or encoded. Takes time in proportion to the text. */
function redactKnownSecrets(text: string): string {
  longestFirst ??= [...new Set([...known.values()].flat())].sort((a, b) => b.length - a.length);
  let struck = text;
  for (const form of longestFirst) {
    if (struck.includes(form)) struck = struck.replaceAll(form, redacted);
  }
  return struck;
}

function valuesIn(secret: string): string[] {
  // A key may also be echoed without its prefix.
  const bare = shapes.flatMap((shape) => {
    const [all, beginning] = [...secret.matchAll(shape)].find(({ index }) => index === 0) ?? [];
    return all === undefined ? [] : [secret.slice(beginning?.length)];
  });
  const url = secret.replace(severalHosts, "$1");
  if (!secret.includes("://") || !URL.canParse(url)) return [secret, ...bare];
  const { protocol, username, password, hostname, pathname, search, searchParams } = new URL(url);
  // A chat webhook's address is itself a secret; a database's address is not.
  if (password === "" && /^https?:$/.test(protocol)) return [secret, pathname + search];
  const passwords = [...searchParams]
    .flatMap(([name, value]) => (/password$/i.test(name) ? [value] : []))
    .concat(password);
  const others = [username, hostname, pathname.slice(1)].map(decodedOrSame);
  return passwords
    .map((each) => [each, decodedOrSame(each)])
    .flatMap((forms) => (forms.some((form) => others.includes(form)) ? [] : forms));
}

/** `redis://:password@host1:1,host2:2/0`: `URL` takes one host. */
const severalHosts = /^([a-z+]+:\/\/(?:[^/?#]*@)?[^/?#@,]*),[^/?#@]*/;

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
 * The base64 characters of a longer text that this value alone determines, where it begins `before` bytes after a whole
 * group of three. In Basic authentication, a password follows its user's name.
 */
function insideBase64(bytes: Buffer, before: number): string {
  const text = Buffer.concat([Buffer.alloc(before), bytes]).toString("base64");
  return text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6));
}

/**
 * A text without secrets: without those that this process holds, by value, and without texts in the shape of one.
 * Shapes are those registered with `registerSecretShapes`, the password of `user:password@` and of `?…password=` in
 * URLs, and what follows `Bearer` or `Basic`. The last line of defence, for texts that should hold none. Idempotent;
 * takes time in proportion to the length of any text.
 */
export function redactSecrets(text: string): string {
  let struck = withoutPasswords(redactKnownSecrets(text))
    .replace(/([?&]\w{0,32}password=)[^&#\s"]+/gi, `$1${redacted}`)
    .replace(/\b(Bearer) {1,4}[\w.~+/=%-]{8,}/gi, `$1 ${redacted}`);
  for (const shape of shapes) struck = struck.replace(shape, `$1${redacted}`);
  return struck.replace(/\b(Basic) {1,4}([\w+/=%-]{8,})/gi, (all, name: string, credentials: string) =>
    Buffer.from(credentials, "base64").includes(":") ? `${name} ${redacted}` : all,
  );
}

/**
 * A text without secrets on one line of at most `maxCharacters`, for a server's answer that people will read. Secrets
 * are removed before the cut, so that no half of one remains.
 */
export function foreignText(text: string, maxCharacters: number): string {
  const line = redactSecrets(text).replaceAll(/\p{Cc}+/gu, " ");
  return line.length <= maxCharacters ? line : `${shortenedTo(line, maxCharacters)}…`;
}

/** The beginning of a text, without half a character at its end, which databases reject. */
export const shortenedTo = (text: string, maxCharacters: number): string =>
  text.slice(0, maxCharacters).replace(/[\uD800-\uDBFF]$/, "");

/**
 * Removes from each URL the text between the first colon after `://` and the last `@` before a blank or a quotation
 * mark. A password may hold slashes and at signs of its own. A URL without a password may hold another URL, as a
 * proxy's does. Visits each character a few times only: a regular expression would start again at every letter, and
 * take seconds for a long text.
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
/** Replaces a password in our own messages. */
const example = "password";

/** Replaces an address of which no part may be shown. */
export const hiddenEmail = "(hidden)";

/** `ada@example.com` → `a…@e….com`; anything else is hidden completely. */
export function maskedEmail(email: string): string {
  const parts = /^(.)[^@]*@(.)[^@]*?(\.[a-z0-9-]{2,24})$/iu.exec(email);
  return parts === null ? hiddenEmail : `${parts[1]}…@${parts[2]}…${parts[3]}`;
}

/**
 * Whether a text contains one of these names, ignoring case. Only whole words count, so that an order number is not
 * found in an amount, a time, or another id.
 */
export function mentioning(names: readonly string[]): (text: string) => boolean {
  const wanted = names.filter((name) => name !== "").map((name) => name.toLowerCase());
  return (text) => {
    const lower = text.toLowerCase();
    return wanted.some((name) => {
      for (let at = lower.indexOf(name); at >= 0; at = lower.indexOf(name, at + 1)) {
        const end = at + name.length;
        const isAmount = /^\d+$/.test(name) && amountEnd.test(lower.slice(end, end + 6));
        const isWithin =
          endsInWord.test(lower.slice(Math.max(0, at - 4), at)) || beginsInWord.test(lower.slice(end, end + 4));
        if (!isWithin && !isAmount) return true;
      }
      return false;
    });
  };
}

/** Ends in a letter or digit, or in one followed by a sign that occurs within ids, amounts and times. */
const endsInWord = /[\p{L}\p{N}_][.,:@+-]?$/u;
const beginsInWord = /^[.,:@+-]?[\p{L}\p{N}_]/u;
/** A currency after a number. */
const amountEnd = /^ [a-z]{3}(?![a-z])/;
