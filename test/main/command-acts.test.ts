import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { beforeAll, expect, test } from "vitest";
import type { CliContext } from "../../src/app/cli/context.ts";
import { commandActs } from "./command-acts.ts";
import { calledBy, commandModules, registerModules } from "../../src/main/commands.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { runCommand } from "./cli/command-line.ts";

const database = useTestDatabase();

/** Every command that does something when it is called, by its words. */
let registered: Map<string, Command>;

beforeAll(async () => {
  const program = new Command("tallyhook");
  await registerModules(program, { version: "1.2.3" } as CliContext, commandModules);
  registered = new Map();
  const collect = (command: Command, words: string): void => {
    // Commander has no public way to ask whether a command has an action of its own.
    const { _actionHandler: action } = command as unknown as { _actionHandler: unknown };
    if (action != null) registered.set(words, command);
    for (const each of command.commands) collect(each, `${words} ${each.name()}`.trim());
  };
  collect(program, "");
});

test("every command says whether it changes something, and no other is listed", () => {
  // A part that was deleted has taken its commands along.
  const words = new Set(commandModules.flatMap(calledBy));
  const listed = Object.keys(commandActs).filter((each) => words.has(each.split(" ")[0] ?? ""));
  expect(listed.toSorted()).toEqual([...registered.keys()].toSorted());
});

const recording = Object.entries(commandActs).flatMap(([command, leaves]) =>
  typeof leaves === "object" && "acts" in leaves ? [[command, leaves.acts] as const] : [],
);

test.each(recording)('"tallyhook %s" can be told who does it', (command) => {
  for (let at = registered.get(command) ?? null; at !== null; at = at.parent) {
    if (at.options.some(({ long }) => long === "--by")) return;
  }
  expect.unreachable("it has no option --by");
});

test("what a person writes to be kept is bounded by every command's option for it", () => {
  const taken: unknown[] = [];
  let options = 0;
  for (const [words, command] of registered) {
    for (const option of command.options) {
      if (!/^--(reason|note|force) </.test(option.flags)) continue;
      options += 1;
      for (const text of ["W".repeat(9_000), "\u001B[31mred", "a\uFFFDb", " \u200B", ""]) {
        try {
          option.parseArg?.(text, undefined);
          taken.push([words, option.flags, text.slice(0, 20)]);
        } catch (error) {
          expect(error).toBeInstanceOf(InvalidArgumentError);
        }
      }
    }
  }
  expect([options > 6, taken]).toEqual([true, []]);
});

test("each act that a command records is in a test", async () => {
  const files = (await readdir("test", { recursive: true })).filter((file) => file.endsWith(".ts"));
  const texts = await Promise.all(files.map((file) => readFile(join("test", file), "utf8")));
  const names = new Set(recording.flatMap(([, acts]) => acts));
  expect([...names].filter((name) => !texts.some((text) => text.includes(`"${name}"`)))).toEqual([]);
});

const arguments_: Readonly<Record<string, string>> = {
  "users show": "ada@example.com",
  "events show": "1",
  "findings show": "1",
  report: "refunds --from 2026-01-01 --to 2026-02-01",
  "close export": "2026-01 --out /nonexistent/month",
  "alerts show": "1",
  "handlers show": "receipts",
  "forward show": "books",
  roles: "--sql",
  "signature explain": "--headers /nonexistent --body /nonexistent",
};

test.each(Object.keys(commandActs).filter((command) => commandActs[command] === "nothing"))(
  '"tallyhook %s" reads where nothing can be written',
  async (command) => {
    const { db, url } = database;
    const name = new URL(url).pathname.slice(1);
    await db.raw("alter database ?? set default_transaction_read_only = on", [name]);
    const module = commandModules.find((each) => calledBy(each).includes(command.split(" ")[0] ?? ""));
    const words = `${command} ${arguments_[command] ?? ""}`.trim().split(" ");
    const { error, err } = await runCommand(await module!.load(), words, {
      env: { DATABASE_URL: url, SVC_BASE_URL: "http://127.0.0.1:9", SVC_API_KEY: "svc_test_sk_1" },
    });
    const said: unknown[] = [err];
    for (let at: unknown = error; at instanceof Error; at = at.cause) {
      said.push(at.message, (at as { code?: unknown }).code);
    }
    expect(said.join("\n")).not.toMatch(/25006|read-only/);
  },
);
