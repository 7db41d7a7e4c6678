import { expect, test } from "vitest";
import { loadConfig } from "../../src/app/config/config.ts";
import { createRuntime } from "../../src/app/create-runtime.ts";
import { calledBy } from "../../src/main/commands.ts";
import { allParts } from "../../src/main/parts.ts";
import { createLog } from "../../src/platform/log.ts";

const runtime = createRuntime(allParts, loadConfig({}), createLog({ level: "silent", name: "test" }));

/** The names that more than one part uses. */
const shared = (names: readonly string[]): string[] => names.filter((name, at) => names.indexOf(name) !== at);

test.each([
  ["name", allParts.map(({ name }) => name)],
  ["command", allParts.flatMap(({ commands = [] }) => commands.flatMap(calledBy))],
  ["answer", allParts.flatMap((part) => Object.keys(part.answers?.(runtime) ?? {}))],
  ["table", allParts.flatMap(({ rights }) => Object.keys(rights?.tables ?? {}))],
  ["check", allParts.flatMap(({ checks = [] }) => checks.flatMap(({ names }) => names))],
  ["reading", allParts.flatMap(({ metrics = [] }) => metrics.map(({ name }) => name))],
  ["listener", allParts.flatMap(({ listener }) => (listener === undefined ? [] : ["listener"]))],
])("no two parts have one %s", (_, names) => {
  expect(names).not.toEqual([]);
  expect(shared(names)).toEqual([]);
});
