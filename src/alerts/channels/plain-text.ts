/**
 * Characters that nobody sees: marks that turn the direction of writing, blanks without width, tags. By them a text
 * shows something else than it holds, or two show the same. What joins two emoji into one may stay.
 */
const unseen =
  /[\u00AD\u061C\u180E\u200B\u200C\u200E\u200F\u202A-\u202E\u2060-\u206F\uFEFF]|\uDB40[\uDC00-\uDC7F]|(?<!\uFE0F|[\uDC00-\uDFFF\u2600-\u27BF])\u200D/g;
/** More marks on one letter than any language writes: they run over the lines above and below. */
const piledMarks = /(\p{M}{4})\p{M}+/gu;
const controls = /[\u0000-\u001F\u007F-\u009F\u2028\u2029]+/g;
/** Names that some chats wake everybody for, wherever they stand. */
const calls = /@(?=(?:channel|here|everyone|all)\b)/gi;

/**
 * What anybody may have written, as one line of at most `maxCharacters`: no line breaks and other control characters, no
 * unseen ones, no piles of accents, no halves of characters, no call to everybody. It still needs the escaping of its channel.
 */
export function oneLine(text: string, maxCharacters: number): string {
  const line = text
    .replace(unseen, "")
    .replace(piledMarks, "$1")
    .replace(controls, " ")
    .replace(calls, "@\u2060")
    .toWellFormed()
    .trim();
  if (line.length <= maxCharacters) return line;
  return `${line.slice(0, maxCharacters - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

/** A link that a person may be given: http or https, else nothing. */
export function safeLink(url: string): string | null {
  if (!URL.canParse(url)) return null;
  const { protocol, href } = new URL(url);
  return /^https?:$/.test(protocol) ? href : null;
}
