/** Limits of a text that a person writes. `longest`: in UTF-16 code units, as a browser's `maxlength` counts. */
export interface TextKind {
  readonly longest: number;
  readonly lines: "one" | "several";
}

/** Shown in lists: the reason for a pause or a silence, the purpose of a secret. */
export const shortLine: TextKind = { longest: 200, lines: "one" };

/** Printed on every report of a month: why it was closed although it is not proved. */
export const longLine: TextKind = { longest: 500, lines: "one" };

/** Every note, and the reason why a row was overwritten or erased. */
export const paragraph: TextKind = { longest: 2_000, lines: "several" };

const control = { one: /\p{Cc}/u, several: /[^\P{Cc}\t\n]/u };

/** The second is the character that a reader puts in place of bytes that are not text. */
const broken = /\p{Cs}|\ufffd/u;

const visible = /[^\s\p{Default_Ignorable_Code_Point}\p{Cf}]/u;

/**
 * Normalises a person's text for storage: without spaces at its ends, its lines ended by LF. Null for a text that is
 * too long, holds control or broken characters, or is blank.
 */
export function readFreeText(typed: string, { longest, lines }: TextKind): string | null {
  const text = typed.replaceAll("\r\n", "\n").trim();
  const isRefused = text.length > longest || control[lines].test(text) || broken.test(text) || !visible.test(text);
  return isRefused ? null : text;
}

/** Describes such a text in the message that refuses another one: "one line of at most …". */
export const wantedText = ({ longest, lines }: TextKind): string =>
  `${lines === "one" ? "one line of text" : "a text"} of at most ${longest} characters that shows something, and holds ` +
  "no control or broken characters";
