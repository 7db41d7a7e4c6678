import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from "vitest";
import { calledBy, commandModules } from "../../src/main/commands.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { databaseUrl, withServer } from "../support/server-commands.ts";
import { runCommand } from "./cli/command-line.ts";

const [serverUrl, name] = [inject("serverUrl"), `${inject("templateDatabase")}_not_migrated`];
beforeAll(() => withServer(serverUrl, (client) => client.query(`CREATE DATABASE ${name}`)));
afterAll(() => withServer(serverUrl, (client) => client.query(`DROP DATABASE ${name} WITH (FORCE)`)));

async function run(args: string[], env: Readonly<Record<string, string>>) {
  const module = commandModules.find((each) => calledBy(each).includes(args[0] ?? ""));
  if (module === undefined) throw new Error(`there is no ${args[0]}`);
  return runCommand(await module.load(), args, { env });
}

test.each([
  ["receiver"],
  ["worker"],
  ["dashboard"],
  ["handlers", "run"],
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
  const { out, error } = await run(args, { DATABASE_URL: databaseUrl(serverUrl, name) });
  expect(out).toBe("");
  expect(error).toMatchObject({
    exitCode: 2,
    message: expect.stringMatching(
      /^The database lacks 0001_inbox, .* and \d+ more\. Run "node src\/bin\/tallyhook\.js migrate" first\.$/,
    ) as string,
  });
});

describe("on a database that a newer version migrated", () => {
  const database = useTestDatabase();
  const has = (...rows: { name: string; needs: string | null }[]) => database.db("tallyhook_migrations").insert(rows);
  afterEach(() => database.db("tallyhook_migrations").where("name", ">", "9").delete());

  test.each([["receiver"], ["worker"], ["dashboard"], ["handlers", "run"], ["report", "month-end"], ["reconcile"]])(
    "%s %s does not start where something it may need was taken away, and says what to do",
    async (...args) => {
      await has({ name: "9001_expand", needs: null }, { name: "9002_contract", needs: "9001_expand" });
      const { out, error } = await run(args, database.environment);
      expect(out).toBe("");
      expect(error).toMatchObject({
        exitCode: 2,
        message:
          "The database was migrated by a newer version of Tallyhook: 9002_contract took away what this version may " +
          "need (it would have to know 9001_expand). Start the version that migrated it, or a later one. The way " +
          "back to this version is a backup (docs/upgrading.md).",
      });
    },
  );

  // An old program has nothing to say of what a newer one did.
  test.each([["upgrade"], ["upgrade", "--rehearse"]])("%s %s says so", async (...args) => {
    await has({ name: "9001_expand", needs: null });
    const { out, error } = await run(args, database.environment);
    expect(out).toBe("");
    expect(error).toMatchObject({
      exitCode: 2,
      message: expect.stringContaining("newer version of Tallyhook (it has 9001_expand)") as string,
    });
  });

  test("a process starts beside what only adds, and beside what takes away only what it has ceased to use", async () => {
    await has({ name: "9001_expand", needs: null }, { name: "9002_contract", needs: "0029_awaiting" });
    const { error } = await run(["events", "list"], database.environment);
    expect(error).toBeNull();
  });

  test("a version that lacks some of it and has others is told so, since neither may migrate the other's", async () => {
    await has({ name: "9001_other_branch", needs: null });
    const first = "0001_inbox";
    await database.db("tallyhook_migrations").where({ name: first }).update({ name: "9000_was" });
    const { error } = await run(["worker"], database.environment);
    await database.db("tallyhook_migrations").where({ name: "9000_was" }).update({ name: first });
    expect(error).toMatchObject({
      exitCode: 2,
      message: expect.stringMatching(
        /^The database was migrated by another version of Tallyhook: it has 9.*, and lacks 0001_inbox\. Start/,
      ) as string,
    });
  });
});
