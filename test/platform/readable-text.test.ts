import { expect, test } from "vitest";
import { wrapped } from "../../src/platform/readable-text.ts";

test.each([
  ["breaks between words alone", "one two three", 7, "one two\n  three"],
  ["leaves a word that is longer than a line", "a wordthatislong b", 6, "a\n  wordthatislong\n  b"],
  ["never breaks within backquotes", "run `a b c` now", 6, "run\n  `a b c`\n  now"],
  ["never breaks within a link's text", "see [a b c](d.md).", 6, "see\n  [a b c](d.md)."],
  ["keeps a backquote and a bracket that nothing closes", "a `b [c d", 80, "a `b [c d"],
])("a paragraph in lines %s", (_, text, width, lines) => {
  expect(wrapped(text, { width, indent: "  " })).toBe(lines);
});
