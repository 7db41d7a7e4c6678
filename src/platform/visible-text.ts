/** One line of what comes from outside, which may hold control characters that a terminal would obey. */
export const visible = (text: string): string => text.replaceAll(/\p{Cc}/gu, "\ufffd");

/** For a text of its own, which keeps its lines. */
export const visibleLines = (text: string): string => text.split("\n").map(visible).join("\n");

const longestWord = 400;
const shownOfLongWord = 60;

/** A message that may repeat what was typed: its lines, without control characters, and long words cut. */
export const visibleMessage = (text: string): string =>
  visibleLines(text).replaceAll(/\S+/gu, (word) =>
    word.length <= longestWord
      ? word
      : `${word.slice(0, shownOfLongWord).toWellFormed()}… (${word.length} characters)`,
  );
