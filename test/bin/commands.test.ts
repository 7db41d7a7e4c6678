import { Command } from "commander";
import { expect, test } from "vitest";
import { commandModules, registerCommands } from "../../src/bin/commands.ts";
import { createContext } from "../../src/cli/context.ts";

const registered = async (...argv: string[]): Promise<string[]> => {
  const program = new Command();
  await registerCommands(program, createContext(), argv);
  return program.commands.map((command) => command.name());
};

test.each(commandModules.map(({ names }) => names))(
  "a command line that begins with %s loads that module alone",
  async (...names) => {
    for (const name of names) expect(await registered(name, "--help")).toEqual(names);
  },
);

test.each([[], ["--help"], ["help", "receiver"], ["recieve"]])(
  "one that begins with no command knows all of them: %j",
  async (...argv) => {
    expect(await registered(...argv)).toEqual(commandModules.flatMap(({ names }) => names));
  },
);
