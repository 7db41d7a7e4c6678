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
