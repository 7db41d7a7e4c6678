/** Marks that turn the direction of writing, so that a text shows something else than it holds. */
const directionMarks = /[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/g;
const controls = /[\u0000-\u001F\u007F-\u009F\u2028\u2029]+/g;
/** Names that some chats wake everybody for, wherever they stand. */
const calls = /@(?=(?:channel|here|everyone|all)\b)/gi;

/**
 * What anybody may have written, as one line of at most `maxCharacters`: no line breaks and other control characters, no
 * marks of direction, no halves of characters, no call to everybody. It still needs the escaping of its channel.
 */
export function oneLine(text: string, maxCharacters: number): string {
  const line = text
    .replace(directionMarks, "")
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
