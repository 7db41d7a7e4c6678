import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Command, type Option } from "commander";
import { beforeAll, describe, expect, test } from "vitest";
import { commandModules, registerModules } from "../src/main/commands.ts";
import { createContext } from "../src/app/cli/context.ts";
import { exitCodes } from "../src/platform/errors.ts";
import { codeBlocks, pages } from "./docs/code-blocks.ts";
import { allParts } from "../src/main/parts.ts";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");

/** The part of a page under a heading. */
function section(page: string, heading: string): string {
  const [, text = ""] = read(page).split(`\n## ${heading}\n`);
  expect(text, `${page} has no "${heading}"`).not.toBe("");
  return text.split("\n## ")[0] ?? "";
}

/** What stands in backquotes, `\|` as in a table. */
const quoted = (text: string): string[] =>
  [...text.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code.replaceAll("\\|", "|"));

/** With arguments or options of its own it is a command beside those below it. */
const runsByItself = ({ commands, registeredArguments, options }: Command): boolean =>
  commands.length === 0 || registeredArguments.length + options.length > 0;

/** Its own, and those of the command above it, which are taken behind it as well. */
const optionsOf = ({ options, parent }: Command): readonly Option[] => [...options, ...(parent?.options ?? [])];

describe("commands", () => {
  const program = new Command("tallyhook");
  beforeAll(() => registerModules(program, createContext("1.2.3", allParts), commandModules));

  const find = (words: readonly string[]): { command: Command; rest: readonly string[] } => {
    let [command, rest]: [Command, readonly string[]] = [program, words];
    for (;;) {
      const next = command.commands.find((each) => each.name() === rest[0]);
      if (next === undefined) return { command, rest };
      [command, rest] = [next, rest.slice(1)];
    }
  };

  test("the README's table names every command that help lists, and no other", () => {
    const table = section("README.md", "Try it");
    const named = quoted(table.slice(table.indexOf("| For")))
      .filter((code) => /^[a-z]/.test(code))
      .flatMap((code) => {
        const [first = "", alternatives = ""] = code.split(" ");
        return first === "report" || !/^[a-z|]+$/.test(alternatives)
          ? [first]
          : alternatives.split("|").map((second) => `${first} ${second}`);
      });
    const there = program.commands.flatMap((command) => [
      ...(runsByItself(command) ? [command.name()] : []),
      ...command.commands
        .filter((each) => command.createHelp().visibleCommands(command).includes(each))
        .map((each) => `${command.name()} ${each.name()}`),
    ]);
    expect([...new Set(named)].toSorted()).toEqual(there.toSorted());
  });

  test("every command line of the documents can be typed: its command and its options are there", () => {
    const wrong = pages.flatMap((page) =>
      [...read(page).matchAll(/(?:`tallyhook|src\/bin\/tallyhook\.js) ([a-z][^`\n]*)/g)].flatMap(([, line = ""]) => {
        const words = line.split(/\s+/).map((word) => word.replace(/[.,;:)"]+$/, ""));
        const { command, rest } = find(words);
        const options = rest.filter((word) => /^--[a-z]/.test(word));
        const unknown = options.filter(
          (name) => name !== "--help" && !optionsOf(command).some(({ long }) => long === name),
        );
        const isComplete = command !== program && (runsByItself(command) || rest[0] !== undefined);
        return isComplete && unknown.length === 0 ? [] : [`${page}: tallyhook ${line}`];
      }),
    );
    expect(wrong).toEqual([]);
  });
});

test("the glossary explains every state of an event, and no other", () => {
  const rows = section("docs/glossary.md", "States of an event").match(/^\| `.*$/gm) ?? [];
  const explained = rows.flatMap((row) => quoted(row).slice(0, 1));
  const [, states = ""] = /check \(state in \(([^)]*)\)/.exec(read("migrations/0001_inbox.sql")) ?? [];
  expect(explained).toEqual([...states.matchAll(/'(\w+)'/g)].map(([, state]) => state));
});

test("no line of a page is longer than 120 characters", () => {
  const generated = new Set(["docs/promises.md", "docs/sandbox-cards.md", "docs/sandbox-coverage.md"]);
  const long = pages
    .filter((page) => !generated.has(page))
    .flatMap((page) =>
      read(page)
        .split("\n")
        .flatMap((line, n) => (line.length > 120 ? [`${page}:${n + 1}`] : [])),
    );
  expect(long).toEqual([]);
});

test("no page has a command with the number of a release, which may not exist and grows old", () => {
  const named = pages.flatMap((page) =>
    [...read(page).matchAll(/tallyhook[-@:]v?\d+\.\d+\S*/g)].map(([name]) => `${page}: ${name}`),
  );
  expect(named).toEqual([]);
});

test("every file that a page names is there", () => {
  const rooms = readdirSync(join(root, "src"));
  const files = ["src", "test", "bench", "migrations", "docs"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((name) => `${folder}/${name}`),
  );
  const top = new Set(readdirSync(root));
  const isThere = (name: string): boolean =>
    top.has(name) || files.some((file) => file === name || file.endsWith(`/${name}`));
  const isOurs = (name: string): boolean =>
    /^(src|test|bench|migrations|docs)\/|\.(ts|sql|mjs|jsonc)$/.test(name) || rooms.includes(name.split("/")[0] ?? "");
  const ofReaders = new Set(codeBlocks.map(({ path }) => path));
  const gone = pages.flatMap((page) =>
    quoted(read(page).replaceAll(/^ *```.*?^ *```$/gms, ""))
      .filter((name) => /^[\w-]+(\/[\w.-]+)*(\.\w+|\/)$/.test(name) && isOurs(name))
      // Names of files that readers make.
      .filter((name) => !/own\/|NAME|_name\./.test(name) && !ofReaders.has(name))
      .filter((name) => !isThere(name.replace(/\/$/, "")))
      .map((name) => `${page}: ${name}`),
  );
  expect(gone).toEqual([]);
});

test("the README's map names every floor and room of src/, and no other", () => {
  const rows = section("README.md", "A map of src/").match(/^\| .*$/gm) ?? [];
  const named = rows.flatMap((row) => quoted(row.split("|")[1] ?? "")).map((name) => name.slice(0, -1));
  const foldersOf = (path: string): string[] =>
    readdirSync(join(root, "src", path), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => join(path, name));
  const folders = ["", "core", "parts"].flatMap(foldersOf).filter((name) => name !== "core" && name !== "parts");
  expect(named.toSorted()).toEqual(folders.toSorted());
});

test("every exit code of the program's errors is documented", () => {
  const text = section("docs/operations.md", "Exit codes");
  const documented = [...text.matchAll(/^\| (\d+) /gm)].map(([, code]) => Number(code));
  expect(documented).toEqual(Object.values(exitCodes));
});

test("every link between the documents leads somewhere", () => {
  const anchor = (heading: string): string =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-");
  const dead = pages.flatMap((page) =>
    [...read(page).matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)].flatMap(([link, path = "", heading]) => {
      const target = path === "" ? page : join(dirname(page), path);
      if (!existsSync(join(root, target))) return [`${page}: ${link}`];
      if (heading === undefined) return [];
      const headings = [...read(target).matchAll(/^#+ (.+)$/gm)].map(([, text = ""]) => anchor(text));
      return headings.includes(heading) ? [] : [`${page}: ${link}`];
    }),
  );
  expect(dead).toEqual([]);
});

test("the changelog and the page on upgrades have the version of package.json", () => {
  const { version } = JSON.parse(read("package.json")) as { version: string };
  expect(read("CHANGELOG.md")).toContain(`\n## [${version}] - `);
  expect(read("docs/upgrading.md")).toContain(`\n### To ${version}, from `);
});
