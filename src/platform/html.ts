/** Text that is HTML already. Only `html` makes it, so no text reaches a page unescaped. */
export interface Html {
  readonly markup: string;
}

/** Texts and numbers are escaped, HTML stays as it is, lists are concatenated; null and false are left out. */
export type HtmlPart = Html | string | number | null | false | readonly HtmlPart[];

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Control characters, and marks that reverse the direction of the text after them: both hide the real text. */
const deceiving = /[^\P{Cc}\t\n\r]|[\u202a-\u202e\u2066-\u2069]/gu;

const escapeHtml = (text: string): string =>
  text.replace(deceiving, "\ufffd").replace(/[&<>"']/g, (character) => entities[character] ?? "");

/**
 * A template that escapes by default, for the content of elements and for quoted attribute values. Not for the inside
 * of script or style elements, nor for URLs from outside. What would deceive the eye is replaced by U+FFFD.
 */
export function html(strings: TemplateStringsArray, ...parts: readonly HtmlPart[]): Html {
  const markup = strings.map((text, n) => (n === 0 ? text : `${print(parts[n - 1])}${text}`));
  return { markup: markup.join("") };
}

function print(part: HtmlPart | undefined): string {
  if (part === null || part === undefined || part === false) return "";
  if (typeof part === "string") return escapeHtml(part);
  if (typeof part === "number") return String(part);
  return "markup" in part ? part.markup : part.map(print).join("");
}
