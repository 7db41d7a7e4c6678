import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectRoot } from "../support/project-root.ts";
import { pages } from "./code-blocks.ts";

/** A docstring is a sentence with a noun as its subject (docs/contributing.md, "Documentation"). */
const fragments = /\/\*\*[\s*]+(?:Of|Whom|Whoever|Who has|For who|For whom|For whoever)\b/g;

/** Translated phrases, also over a line's end: "for operators", "permanently", "still" say the same. */
const phrases = /\b(?:for[\s*]+who|for[\s*]+ever|all[\s*]+the[\s*]+same)\b/gi;

/** Lines of a text in the words that the language has no place for. */
const foundIn = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)].map(
    ({ 0: words, index }) => `${text.slice(0, index).split("\n").length}: ${words.replaceAll(/\s[\s*]*/g, " ")}`,
  );

const sources = readdirSync(join(projectRoot, "src"), { recursive: true, encoding: "utf8" })
  .filter((path) => /\.(?:ts|sql)$/.test(path))
  .map((path) => `src/${path}`);

const hits = (files: readonly string[], pattern: RegExp): string[] =>
  files.flatMap((file) =>
    foundIn(readFileSync(join(projectRoot, file), "utf8"), pattern).map((hit) => `${file}:${hit}`),
  );

test("no docstring is a fragment about a person or a thing that it does not name", () => {
  expect(sources.length).toBeGreaterThan(500);
  expect(hits(sources, fragments)).toEqual([]);
});

test("neither sources nor pages use the phrases of a translation", () => {
  expect(hits([...sources, ...pages], phrases)).toEqual([]);
});

test.each([
  ["/** Of the account. */", fragments, ["1: /** Of"]],
  ["code();\n/**\n * Whoever asks. */", fragments, ["2: /** Whoever"]],
  ["/** Who has it may read. */", fragments, ["1: /** Who has"]],
  ["/** For whoever runs it. */", fragments, ["1: /** For whoever"]],
  ["# Page\n\nFor who runs it.", phrases, ["3: For who"]],
  [" * It is kept for\n * ever.", phrases, ["1: for ever"]],
  ["It is sent all the same.", phrases, ["1: all the same"]],
  ["/** Office hours, for whole days, forever. */", fragments, []],
  ["A person who acts, for whole days, forever.", phrases, []],
])("%j is judged by its words", (text, pattern, found) => {
  expect(foundIn(text, pattern)).toEqual(found);
});
