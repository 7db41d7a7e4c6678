import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { runbookOf } from "../../src/parts/alerts/message.ts";
import { loadAlertSettings } from "../../src/parts/alerts/settings.ts";
import { readAlertRules } from "../deployment/monitoring-files.ts";
import { projectRoot } from "../support/project-root.ts";

// What the page's commands and links lead to is proved for all pages: test/documentation.test.ts.
const page = readFileSync(join(projectRoot, "docs/runbooks.md"), "utf8");
const sectionsUnder = (heading: string): { name: string; text: string }[] => {
  const [, after = ""] = page.split(`\n## ${heading}\n`);
  const [part = ""] = after.split("\n## ");
  const texts = part.split("\n### ").slice(1);
  return texts.map((text) => ({ name: text.slice(0, text.indexOf("\n")), text }));
};
const sections = sectionsUnder("From Tallyhook");
const fromPrometheus = sectionsUnder("From Prometheus");

/** Messages name these: the rules of the settings, and the daily list, which is of no rule. */
const ruleNames = Object.keys(loadAlertSettings(null).rules);
const ownRules = ruleNames.filter((rule) => rule.startsWith("own_"));
const named = [...ruleNames.filter((rule) => !ownRules.includes(rule)), "digest"];

const parts = ["What it means.", "Money at risk.", "Look at", "Do", "Escalate."];

test("every rule has a section, and every section a rule", () => {
  expect(sections.map(({ name }) => name).toSorted()).toEqual(named.toSorted());
});

test("every rule of your own has a section, wherever it stands on the page", () => {
  expect(ownRules.filter((rule) => !page.includes(`\n### ${rule}\n`))).toEqual([]);
});

test("the link of a message is the anchor of the section", () => {
  for (const name of named) expect(runbookOf(name, null)).toBe(`docs/runbooks.md#${name}`);
  expect(runbookOf("decline", "https://git.example.com/runbooks.md")).toBe(
    "https://git.example.com/runbooks.md#decline",
  );
});

test("every alert of Prometheus has a section, which its link leads to; and every section an alert", () => {
  const rules = readAlertRules();
  const names = fromPrometheus.map(({ name }) => name);
  expect(names.toSorted()).toEqual([...new Set(rules.map(({ alert }) => alert))].toSorted());
  for (const { alert, annotations } of rules) {
    // As GitHub makes an anchor of a heading of one word.
    const anchor = new URL(annotations["runbook_url"] ?? "").hash.slice(1);
    expect(
      names.map((name) => name.toLowerCase()),
      alert,
    ).toContain(anchor);
    expect(annotations["runbook_url"], alert).toContain("/docs/runbooks.md#");
  }
});

test("where a rule of Tallyhook tells the same, the section links to that rule's", () => {
  for (const { alert, labels } of readAlertRules()) {
    const { own_rule: own } = labels;
    if (own === undefined) continue;
    const section = fromPrometheus.find(({ name }) => name === alert);
    expect(section?.text, alert).toContain(`[${own}](#${own})`);
  }
});

describe.each([...sections, ...fromPrometheus])("$name", ({ text }) => {
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
