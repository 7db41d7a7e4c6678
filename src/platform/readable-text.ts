/** "1 event", "2 events": a number with its noun. `many` is for plurals that do not end in s. */
export function counted(n: number | bigint | string, one: string, many = `${one}s`): string {
  return `${n} ${String(n) === "1" ? one : many}`;
}

const units = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
] as const;

/** A duration for people, in its two largest units: `4 days 3 hours`, `35 minutes`, `less than a minute`. */
export function durationText(ms: number): string {
  let seconds = Math.max(0, Math.floor(ms / 1_000));
  const first = units.findIndex(([, length]) => seconds >= length);
  if (first < 0) return "less than a minute";
  const parts: string[] = [];
  for (const [unit, length] of units.slice(first, first + 2)) {
    const count = Math.floor(seconds / length);
    seconds -= count * length;
    if (count > 0) parts.push(counted(count, unit));
  }
  return parts.join(" ");
}

/** One line of outside text. Control characters, which a terminal would obey, are replaced. */
export const withoutControls = (text: string): string => text.replaceAll(/\p{Cc}/gu, "\ufffd");

/** The same for a text of several lines. */
export const linesWithoutControls = (text: string): string => text.split("\n").map(withoutControls).join("\n");

const longestWord = 400;
const shownOfLongWord = 60;

/** A message that may repeat typed text: keeps its lines, replaces control characters, cuts long words. */
export const printableMessage = (text: string): string =>
  linesWithoutControls(text).replaceAll(/\S+/gu, (word) =>
    word.length <= longestWord ? word : `${word.slice(0, shownOfLongWord).toWellFormed()}… (${word.length} characters)`,
  );

/** The first names of a list, and how many more there are. */
export function someOf(names: readonly string[], atMost = 3): string {
  const more = names.length - atMost;
  return names.slice(0, atMost).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

/**
 * A paragraph in lines of at most `width` characters, those after the first behind `indent`; breaks between words
 * alone, and never within backquotes or the text of a Markdown link.
 */
export function wrapped(text: string, { width, indent = "" }: { width: number; indent?: string }): string {
  const lines: string[] = [];
  let line = "";
  for (const [word] of text.matchAll(/(?:`[^`]*`|\[[^\][]*\]|\S)+/g)) {
    if (line.trim() !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = indent + word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  return [...lines, line].join("\n");
}

/**
 * Invisible characters: direction marks, zero-width spaces, tags. With them a text can show something other than it
 * contains, or two texts can look the same. Emoji joiners are kept.
 */
const invisible =
  /[\u00AD\u061C\u180E\u200B\u200C\u200E\u200F\u202A-\u202E\u2060-\u206F\uFEFF]|\uDB40[\uDC00-\uDC7F]|(?<!\uFE0F|[\uDC00-\uDFFF\u2600-\u27BF])\u200D/g;
/** More combining marks on one letter than any language uses. They would run over the lines above and below. */
const piledMarks = /(\p{M}{4})\p{M}+/gu;
const controls = /[\u0000-\u001F\u007F-\u009F\u2028\u2029]+/g;
/** Names that notify every member in some chats, wherever they appear. */
const callsToEverybody = /@(?=(?:channel|here|everyone|all)\b)/gi;

/**
 * Makes one line of at most `maxCharacters` from outside text: without line breaks and other control characters,
 * invisible characters, piles of accents, halves of characters and calls to all members. The channel must still escape
 * it.
 */
export function oneLine(text: string, maxCharacters: number): string {
  const line = text
    .replace(invisible, "")
    .replace(piledMarks, "$1")
    .replace(controls, " ")
    .replace(callsToEverybody, "@\u2060")
    .toWellFormed()
    .trim();
  if (line.length <= maxCharacters) return line;
  return `${line.slice(0, maxCharacters - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

/** A spreadsheet treats text that begins like this as a formula and runs it. */
const startsFormula = /^[=+\-@\t\r\n]/;

/** Puts a `'` before a text that a spreadsheet would run. */
export const withoutFormula = (text: string): string => (startsFormula.test(text) ? `'${text}` : text);
