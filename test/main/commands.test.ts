import { Command } from "commander";
import { expect, test } from "vitest";
import { commandModules, registerCommands } from "../../src/main/commands.ts";
import { createContext } from "../../src/app/cli/context.ts";
import { allParts } from "../../src/main/parts.ts";

const registered = async (...argv: string[]): Promise<string[]> => {
  const program = new Command();
  await registerCommands(program, createContext("1.2.3", allParts), argv);
  return program.commands.map((command) => command.name());
};

test.each(commandModules.map(({ names }) => names))(
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
    expect(await registered(...argv)).toEqual(commandModules.flatMap(({ names }) => names));
  },
);

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
