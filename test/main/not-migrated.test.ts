import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { commandModules } from "../../src/main/commands.ts";
import { databaseUrl, withServer } from "../support/server-commands.ts";
import { runCommand } from "./cli/command-line.ts";

const [serverUrl, name] = [inject("serverUrl"), `${inject("templateDatabase")}_not_migrated`];
beforeAll(() => withServer(serverUrl, (client) => client.query(`CREATE DATABASE ${name}`)));
afterAll(() =>
  withServer(serverUrl, (client) => client.query(`DROP DATABASE ${name} WITH (FORCE)`)),
);

test.each([
  ["receiver"],
  ["worker"],
  ["events", "list"],
  ["events", "show", "1"],
  ["events", "replay", "--dead"],
  ["events", "prune", "--older-than", "1"],
  ["reconcile"],
  ["import"],
  ["findings", "list"],
  ["report", "month-end"],
  ["close", "2026-01", "--yes"],
  ["secrets", "list"],
  ["secrets", "retire", "db:0"],
  ["endpoint", "list"],
  ["alerts", "list"],
  ["alerts", "ack", "1"],
  ["signature", "explain", "--headers", "package.json", "--body", "package.json"],
  ["changes"],
  ["changes", "consumers"],
  ["handlers", "list"],
  ["handlers", "show", "receipts"],
  ["handlers", "retry", "receipts", "--all"],
  ["handlers", "remove", "receipts", "--yes"],
  ["customers", "erase", "1", "--yes", "--by", "me", "--reason", "asked"],
])("%s %s says what to do on a database that is not migrated", async (...args) => {
  const module = commandModules.find(({ names }) => names.includes(args[0] ?? ""));
  if (module === undefined) throw new Error(`there is no ${args[0]}`);
  const { out, error } = await runCommand(await module.load(), args, {
    env: { DATABASE_URL: databaseUrl(serverUrl, name) },
  });
  expect(out).toBe("");
  expect(error).toMatchObject({
    exitCode: 2,
    message: expect.stringMatching(
      /^The database lacks 0001_inbox, .* and \d+ more\. Run "npx tallyhook migrate" first\.$/,
    ) as string,
  });
});
