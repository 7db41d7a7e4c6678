import { expect, test } from "vitest";
import { whatIsSkipped } from "../../../src/parts/reports/cli/close-words.ts";
import { takesTwo } from "../../../src/parts/reports/close/four-eyes.ts";

test.each([
  ["dashboard", true, false],
  ["always", true, true],
  ["off", false, false],
] as const)("with %s, two people close a month: on the dashboard %s, by a command %s", (setting, page, command) => {
  expect(takesTwo(setting, "dashboard")).toBe(page);
  expect(takesTwo(setting, "command")).toBe(command);
  const skips = whatIsSkipped(setting, { month: "2026-10", by: "ada", standing: null });
  expect(skips !== null, "a command says that it skips what the dashboard asks for").toBe(page && !command);
});
