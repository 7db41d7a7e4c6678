import { Command, Help } from "commander";
import { expect, test } from "vitest";
import { calledBy, commandModules, registerCommands, registerModules } from "../../src/main/commands.ts";
import { createContext } from "../../src/app/cli/context.ts";
import { allParts } from "../../src/main/parts.ts";

const registered = async (...argv: string[]): Promise<string[]> => {
  const program = new Command();
  await registerCommands(program, createContext("1.2.3", allParts), argv);
  return program.commands.map((command) => command.name());
};

test.each(commandModules.map(calledBy))(
  "a command line that begins with %s loads that module alone",
  async (...names) => {
    for (const name of names) {
      expect(await registered(name, "--help")).toEqual(names);
      expect(await registered("help", name)).toEqual(names);
    }
  },
);

test.each(["--version", "-V"])("%s loads no command", async (option) => {
  expect(await registered(option)).toEqual([]);
});

test.each([[], ["--help"], ["help"], ["help", "recieve"], ["recieve"]])(
  "one that begins with no command knows all of them: %j",
  async (...argv) => {
    expect(await registered(...argv)).toEqual(commandModules.flatMap(calledBy));
  },
);

test("what help lists of a command without its code is how the code says it is called", async () => {
  const program = new Command();
  await registerModules(program, createContext("1.2.3", allParts), commandModules);
  const called = program.commands.map((command) => new Help().subcommandTerm(command));
  expect(commandModules.flatMap(({ lists }) => Object.keys(lists))).toEqual(called);
});

test.each(["receiver", "report list"])("words after -- are a command line, too: %s", async (line) => {
  expect(await registered("--", ...line.split(" "))).toEqual(await registered(...line.split(" ")));
});

test.each([
  [["sandbox", "--host", ""], "--host"],
  [["sandbox", "--state", " "], "--state"],
  [["report", "refunds", "--out", ""], "--out"],
  [["events", "list", "--type", ""], "--type"],
  [["close", "export", "2026-10", "--out", ""], "--out"],
  [["heal", "order", "x", "--from-service", "--reason", ""], "--reason"],
  [["endpoint", "remove", "", "--yes"], "id"],
  [["report", ""], "name"],
])("an empty value is refused before anything is done: %j", async (argv, which) => {
  let said = "";
  const program = new Command().exitOverride().configureOutput({ writeErr: (text) => (said += text) });
  await registerCommands(program, createContext("1.2.3", allParts), argv);
  await expect(program.parseAsync(argv, { from: "user" })).rejects.toMatchObject({
    code: "commander.invalidArgument",
  });
  expect(said).toContain(which);
  expect(said).toContain("It is empty. Is a shell variable unset?");
});

test("a value that is not empty reaches the command as it is", async () => {
  const program = new Command().exitOverride().configureOutput({ writeErr: () => {} });
  const argv = ["sandbox", "--allow-host", "one.example", "--allow-host", "two.example"];
  await registerCommands(program, createContext("1.2.3", allParts), argv);
  const [sandbox] = program.commands;
  sandbox?.action(() => {});
  await program.parseAsync(argv, { from: "user" });
  expect(sandbox?.opts()).toMatchObject({
    allowHost: ["one.example", "two.example"],
    host: "127.0.0.1",
  });
});
