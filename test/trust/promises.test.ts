import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { projectRoot } from "../support/project-root.ts";
import { limits } from "./limits.ts";
import { declares, isOfTitle, missingTests, testNamePattern, testsNamedIn } from "./named-tests.ts";
import { type RunReport, lastRunOfAll, promisesPage, withoutRun } from "./promises-page.ts";
import { promises } from "./promises.ts";

const read = (path: string): Promise<string> => readFile(join(projectRoot, path), "utf8");

describe("the promises", () => {
  test("name tests that there are, one at least for each", () => {
    expect(promises.filter(({ tests }) => tests.length === 0)).toEqual([]);
    expect(missingTests(promises.flatMap(({ tests }) => tests))).toEqual([]);
  });

  test("stand on their page as they are declared (npm run promises)", async () => {
    const nothing: RunReport = { startTime: 0, testResults: [] };
    expect(withoutRun(await read("docs/promises.md"))).toBe(withoutRun(promisesPage(promises, nothing, "")));
  });

  const one = { promise: "P.", tests: [{ file: "test/a.test.ts", title: "a %s" }] };
  const run = (...statuses: string[]): RunReport => ({
    startTime: Date.UTC(2026, 0, 2, 3, 4),
    testResults: [
      {
        name: "/somewhere/test/a.test.ts",
        assertionResults: statuses.map((status, n) => ({ title: `a ${n}`, status })),
      },
      { name: "/somewhere/test/b.test.ts", assertionResults: [{ title: "a 1", status: "failed" }] },
    ],
  });

  test.each([
    [["passed", "passed"], "passed"],
    [["passed", "failed"], "failed"],
    [["passed", "skipped"], "not run"],
    [[], "not run"],
  ])("held in a run by cases that %j: %s", (statuses, expected) => {
    expect(lastRunOfAll(one, run(...statuses))).toBe(expected);
  });

  test("the page says when the run was, of what, and how many held", () => {
    expect(promisesPage([one], run("passed"), "commit abc")).toContain(
      "**Last run: 2026-01-02 03:04 UTC, commit abc. 1 of 1 promises held.**",
    );
  });
});

describe("the threat model", () => {
  test("says of each threat by which tests it is held, and each of them is there; or says that it is not held", async () => {
    const page = await read("docs/threat-model.md");
    const [, boundaries = ""] = page.split("\n## The boundaries\n");
    const threats = boundaries.split("\n- ").slice(1);
    expect(threats.length).toBeGreaterThan(40);
    const loose = threats.filter(
      (threat) => testsNamedIn(threat).length === 0 && !/\*\*Not held\*\*|^\*\*[STRIDE]\*\* No [STRIDE]: /.test(threat),
    );
    expect(loose).toEqual([]);
    expect(missingTests(testsNamedIn(page))).toEqual([]);
    // Each backquoted test file is one with a title behind it.
    const files = [...page.matchAll(/`test\/[^`]+\.test\.ts`/g)];
    expect(files).toHaveLength(testsNamedIn(page).length);
  });

  test("goes through all six kinds of threat at each boundary, or says which have none there", async () => {
    const page = await read("docs/threat-model.md");
    const [, text = ""] = page.split("\n## The boundaries\n");
    for (const boundary of text.split("\n### ").slice(1)) {
      const [name = ""] = boundary.split("\n", 1);
      for (const letter of "STRIDE") {
        expect(boundary, `${name}: ${letter}`).toMatch(
          new RegExp(`\\n- \\*\\*[STRIDE]*${letter}[STRIDE]*\\*\\*|No [STRIDE, ]*${letter}\\b`),
        );
      }
    }
  });
});

test("the page of operations lists the limits for which there are tests, and no other", async () => {
  const page = await read("docs/operations.md");
  const [, section = ""] = page.split("\n### Limits that promises rest on\n");
  const [text = ""] = section.split("\n#");
  expect([...text.matchAll(/^- \*\*(.+?)\*\*/gm)].map(([, limit]) => limit)).toEqual(Object.keys(limits));
  expect(Object.values(limits).filter((tests) => tests.length === 0)).toEqual([]);
  expect(missingTests(Object.values(limits).flat())).toEqual([]);
});

test("a test is known by its title as the source has it, and its cases by what they fill in", () => {
  const source = 'describe("a", () => {\n  test.each([1])(\n    "b %i",\n    () => {});\n  test(`c ${n}`, f);\n});';
  expect(declares(source, "b %i")).toBe(true);
  expect(declares(source, "c ${n}")).toBe(true);
  expect(declares(source, "a")).toBe(false);
  expect(declares(source, "b")).toBe(false);
  expect([isOfTitle("b 7", "b %i"), isOfTitle("b 7 c", "b %i c"), isOfTitle("xb 7", "b %i")]).toEqual([
    true,
    true,
    false,
  ]);
});

test("those tests alone run that are named, whatever group they are in", () => {
  const pattern = new RegExp(testNamePattern(["a (b) %s", "c ${n}d"]));
  const titles = ["a (b) 7", "in a group a (b) 8", "c 1d", "c 1d e", "a b 7"];
  expect(titles.filter((title) => pattern.test(title))).toEqual(["a (b) 7", "in a group a (b) 8", "c 1d"]);
});
