import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { runbookOf } from "../../src/alerts/runbook.ts";
import { loadAlertSettings } from "../../src/alerts/settings.ts";
import { projectRoot } from "../support/project-root.ts";

// What the page's commands and links lead to is proved for all pages: test/documentation.test.ts.
const page = readFileSync(join(projectRoot, "docs/runbooks.md"), "utf8");
const [, ours = ""] = page.split("\n## From Tallyhook\n");
const [ownPart = ""] = ours.split("\n## ");
const sections = ownPart
  .split("\n### ")
  .slice(1)
  .map((text) => ({ name: text.slice(0, text.indexOf("\n")), text }));

/** Messages name these: the rules of the settings, and the daily list, which is of no rule. */
const named = [...Object.keys(loadAlertSettings(null).rules), "digest"];

const parts = ["What it means.", "Money at risk.", "Look at", "Do", "Escalate."];

test("every rule has a section, and every section a rule", () => {
  expect(sections.map(({ name }) => name).toSorted()).toEqual(named.toSorted());
});

test("the link of a message is the anchor of the section", () => {
  for (const name of named) expect(runbookOf(name, null)).toBe(`docs/runbooks.md#${name}`);
  expect(runbookOf("decline", "https://git.example.com/runbooks.md")).toBe(
    "https://git.example.com/runbooks.md#decline",
  );
});

describe.each(sections)("$name", ({ text }) => {
  test("has the five parts in their order, each with something in it", () => {
    const titles = [...text.matchAll(/^\*\*([^*]+)\*\*/gm)].map(([, title]) => title);
    expect(titles).toEqual(parts);
    for (const content of text.split(/^\*\*[^*]+\*\*/m).slice(1)) {
      expect(content.trim().length).toBeGreaterThan(20);
    }
  });

  test("says how to find the money, with a command, a page or the alert's own field", () => {
    const money = /\*\*Money at risk\.\*\*([\s\S]*?)\n\n/.exec(text)?.[1] ?? "";
    expect(money).toMatch(/`|None|The facts|that day/);
  });

  test("names steps in order, and a command among what to look at and to do", () => {
    expect(text).toMatch(/\*\*Do\*\*\n\n1\. /);
    expect(text).toMatch(/src\/bin\/tallyhook\.js [a-z]/);
  });
});
