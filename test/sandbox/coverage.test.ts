import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { format } from "oxfmt";
import { expect, test } from "vitest";
import { allMarks, coverageDocument, markedStatements, titlesWithoutTest } from "./coverage.ts";
import { untestedReasons } from "./untested.ts";

const here = import.meta.dirname;
const files = readdirSync(here)
  .filter((name) => name.endsWith(".test.ts"))
  .sort()
  .map((name) => ({ name, text: readFileSync(join(here, name), "utf8") }));

test("every test of the table is there, by its title", () => {
  expect(titlesWithoutTest(files)).toEqual([]);
});

test("tests cover statements that exist, by their right kind", () => {
  const known = new Set(allMarks());
  const unknown = [...markedStatements()].filter(([mark]) => !known.has(mark));
  expect(unknown).toEqual([]);
});

test("a reason not to test a statement goes when it is tested", () => {
  const marked = markedStatements();
  const tested = new Set([...marked.keys()].map((mark) => Number(mark.slice(2))));
  expect(Object.keys(untestedReasons).filter((number) => tested.has(Number(number)))).toEqual([]);
});

test("docs/sandbox-coverage.md is that of these tests", async () => {
  const { code } = await format("sandbox-coverage.md", coverageDocument(untestedReasons), { printWidth: 100 });
  await expect(code).toMatchFileSnapshot("../../docs/sandbox-coverage.md");
});
