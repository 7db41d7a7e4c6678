/** What a text that a person writes may be. `longest`: in UTF-16 code units, as a browser's `maxlength` counts. */
export interface TextKind {
  readonly longest: number;
  readonly lines: "one" | "several";
}

/** Said in lists: why something was paused or silenced, what a secret is for. */
export const shortLine: TextKind = { longest: 200, lines: "one" };

/** Said in messages and reports. */
export const longLine: TextKind = { longest: 500, lines: "one" };

/** Notes, and why a row was overwritten or erased. */
export const paragraph: TextKind = { longest: 2_000, lines: "several" };

const control = { one: /\p{Cc}/u, several: /[^\P{Cc}\t\n]/u };

/** Where bytes were no text, their reader has put the second of these. */
const broken = /\p{Cs}|\ufffd/u;

const visible = /[^\s\p{Default_Ignorable_Code_Point}\p{Cf}]/u;

/**
 * The text that a person wrote, as it is stored: without spaces at its ends, its lines ended by LF. Null for what is
 * longer, holds control characters or broken ones, or shows nothing.
 */
export function readFreeText(typed: string, { longest, lines }: TextKind): string | null {
  const text = typed.replaceAll("\r\n", "\n").trim();
  const isRefused = text.length > longest || control[lines].test(text) || broken.test(text) || !visible.test(text);
  return isRefused ? null : text;
}

/** What such a text is, for the message that refuses another one: "one line of at most …". */
export const wantedText = ({ longest, lines }: TextKind): string =>
  `${lines === "one" ? "one line of text" : "a text"} of at most ${longest} characters that shows something, and holds ` +
  "no control or broken characters";
