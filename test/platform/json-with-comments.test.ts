import fc from "fast-check";
import { expect, test } from "vitest";
import { parseJsonWithComments } from "../../src/platform/settings-file.ts";

function valueOf(text: string): unknown {
  const parsed = parseJsonWithComments(text);
  if (!parsed.ok) throw new Error(`line ${parsed.place.line}: ${parsed.reason}`);
  return parsed.value;
}

test("reads whatever JSON there is as JSON.parse does", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(0, 2), (value, indent) => {
      const text = JSON.stringify(value, null, indent);
      expect(valueOf(text)).toEqual(JSON.parse(text));
    }),
  );
});

test("takes comments and last commas, but not those inside texts", () => {
  const text = `\uFEFF// first
    { /* a "quoted" // one */ "a//b": "/* no comment */", // { "c": 1 }
      "list": [1, 2, /* 3, */], "__proto__": null, }
    // last`;
  const value = valueOf(text);
  expect(JSON.stringify(value)).toBe('{"a//b":"/* no comment */","list":[1,2],"__proto__":null}');
  expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
});

test("says on which line a value is, and for one that is not there, where it would be", () => {
  const parsed = parseJsonWithComments('{\n "a": {\n\n "b": [1,\n 2]\n }\n}');
  expect(parsed.ok && [["a"], ["a", "b"], ["a", "b", 1], ["a", "c"], []].map(parsed.lineOf)).toEqual([2, 4, 5, 2, 1]);
});

test.each([
  ["", 1, 1, "a value is expected here"],
  ['{"a": 1\n "b": 2}', 2, 2, "a comma is expected here"],
  ['{\n"a" 1}', 2, 5, "a colon is expected here"],
  ["{\na: 1}", 2, 1, "this word is not a value: keys and texts need double quotes"],
  ["{1: 1}", 1, 2, "a key in double quotes is expected here"],
  ['{"a": 1,\n "a": 2}', 2, 2, 'the key "a" is repeated'],
  ['[{"b": [1]},\n {"a": {"b": 1, "b": 2}}]', 2, 17, 'the key "b" is repeated'],
  ["[1,\n2", 2, 2, "a comma or ] is expected here"],
  ['["a\nb"]', 1, 2, "this text has no closing double quote"],
  [String.raw`["\x"]`, 1, 2, "this text contains an invalid escape"],
  ["[01]", 1, 3, "a comma is expected here"],
  ["[,]", 1, 2, "a value is expected here"],
  ["[1,,2]", 1, 4, "a value is expected here"],
  ["[nullx]", 1, 2, "this word is not a value: keys and texts need double quotes"],
  ["[1] 2", 1, 5, "nothing is allowed after the end"],
  ["\n/* [1]", 2, 1, "this comment has no end"],
])("refuses %j, with line %i and column %i", (text, line, column, reason) => {
  expect(parseJsonWithComments(text)).toEqual({ ok: false, place: { line, column }, reason });
});

test.each([
  ["brackets", "[".repeat(100_000)],
  ["braces", '{"a":'.repeat(100_000)],
  ["whole lists", `${"[".repeat(100_000)}${"]".repeat(100_000)}`],
])("refuses 100,000 %s in each other, and does not overflow", (_, text) => {
  expect(parseJsonWithComments(text)).toMatchObject({
    ok: false,
    place: { line: 1 },
    reason: "values are nested more than 100 levels deep",
  });
});
