import stringWidth from "string-width";

/** The places that a terminal takes for one line of text: two for a wide character, none for a combining mark. */
export const displayWidth = (text: string): number =>
  plain.test(text) ? text.length : stringWidth(text.replaceAll(marks, ""));

const plain = /^[\x20-\x7e]*$/;
const marks = /[\p{Mn}\p{Me}\p{Cf}]/gu;

const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });

/** The characters of a text as people count them, each with its marks. */
const charactersOf = (text: string): readonly string[] =>
  plain.test(text) ? text.split("") : [...graphemes.segment(text)].map(({ segment }) => segment);

/** A text filled up to so many places: at its end, or before it. */
export function padded(text: string, width: number, side: "left" | "right" = "left"): string {
  const blanks = " ".repeat(Math.max(0, width - displayWidth(text)));
  return side === "left" ? text + blanks : blanks + text;
}

/** A text of at most so many places, with "…" for its middle: ids and addresses differ at both ends. */
export function shortenedMiddle(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  if (width < 1) return "";
  const characters = charactersOf(text);
  const head = takeWhole(characters, Math.ceil((width - 1) / 2));
  const tail = takeWhole(characters.toReversed(), width - 1 - displayWidth(head.join("")));
  return `${head.join("")}…${tail.toReversed().join("")}`;
}

/** The first characters that fit into so many places. */
function takeWhole(characters: readonly string[], width: number): string[] {
  let used = 0;
  const first = characters.findIndex((each) => (used += displayWidth(each)) > width);
  return characters.slice(0, first < 0 ? characters.length : first);
}

/**
 * Breaks a line between words into lines of at most so many places. `long` gives the pieces of a word that is longer:
 * all of it in parts unless given, so that nothing is lost.
 */
export function brokenLines(line: string, width: number, long?: (word: string) => readonly string[]): string[] {
  if (displayWidth(line) <= width) return [line];
  const lines: string[] = [];
  let current = "";
  for (const word of line.split(" ").filter((each) => each !== "")) {
    const pieces = displayWidth(word) <= width ? [word] : (long?.(word) ?? partsOf(word, width));
    for (const piece of pieces) {
      const joined = current === "" ? piece : `${current} ${piece}`;
      if (displayWidth(joined) <= width || current === "") current = joined;
      else {
        lines.push(current);
        current = piece;
      }
    }
  }
  return [...lines, current];
}

function partsOf(word: string, width: number): string[] {
  const parts: string[] = [];
  for (let left = charactersOf(word); left.length > 0;) {
    // A wide character may not fit even alone.
    const taken = Math.max(1, takeWhole(left, width).length);
    parts.push(left.slice(0, taken).join(""));
    left = left.slice(taken);
  }
  return parts;
}
