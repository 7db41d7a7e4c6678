import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { readRemains } from "../../../src/parts/delivery/dispatch/manage-handlers.ts";
import { registerForward } from "../../../src/parts/delivery/forward/command.ts";
import { registerHandlers } from "../../../src/parts/delivery/handlers/command.ts";
import { emptyDispatch, registerHandler } from "../../dispatch/dispatch-stand.ts";
import { storeRun } from "../../dispatch/stored-runs.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { runCommand } from "./command-line.ts";

const database = useTestDatabase();
const handler = "forward:crm";
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tallyhook-forward-"));
  const crm = { send: "changes", url: "https://crm.example.com/in", secretFrom: "FORWARD_CRM" };
  await writeFile(join(folder, "forward.jsonc"), JSON.stringify({ destinations: { crm } }));
});
afterAll(() => rm(folder, { recursive: true }));
beforeEach(async () => {
  await emptyDispatch(database.db);
  await registerHandler(database.db, { name: handler, from: "now" });
});

const run = (args: string[], { answer, file }: { answer?: string; file?: string } = {}) =>
  runCommand(registerForward, ["forward", ...args], {
    env: {
      ...database.environment,
      ...(file === undefined ? {} : { FORWARD_SETTINGS_FILE: join(folder, file) }),
    },
    ...(answer === undefined ? {} : { terminal: true, stdin: `${answer}\n` }),
  });

describe("tallyhook forward remove", () => {
  test("says what is thrown away and asks; without a yes nothing is done", async () => {
    const { db } = database;
    await storeRun(db, { handler, seq: 1, id: "order-1", state: "dead" });
    await storeRun(db, { handler, seq: 2, id: "order-1", isFirst: false });
    const declined = await run(["remove", "crm"], { answer: "n" });
    expect(declined.err).toContain("2 deliveries that it has not done (1 dead) are thrown away.");
    expect(String(declined.error)).toContain("nothing was done");
    expect(await readRemains(db, handler)).not.toBeNull();
    expect((await run(["remove", "crm"], { answer: "y" })).error).toBeNull();
    expect(await readRemains(db, handler)).toBeNull();
  });

  test("leaves handlers and other destinations alone", async () => {
    const { db } = database;
    await registerHandler(db, { name: "crm", from: "now" });
    await registerHandler(db, { name: "forward:erp", from: "now" });
    expect((await run(["remove", "crm", "--yes"])).error).toBeNull();
    expect(await db("dispatch.handlers").orderBy("name").pluck("name")).toEqual(["crm", "forward:erp"]);
  });

  test("refuses while a worker sends to it, and says how to stop that", async () => {
    const { db } = database;
    const claimedUntil = new Date(Date.now() + 60_000);
    await storeRun(db, { handler, seq: 1, id: "order-1", claimedUntil });
    const { error } = await run(["remove", "crm", "--yes"]);
    expect(error).toMatchObject({ exitCode: 64 });
    expect(String(error)).toContain(`until ${claimedUntil.toISOString()} at most`);
    expect(String(error)).toContain("Take it out of FORWARD_SETTINGS_FILE");
    expect(await readRemains(db, handler)).not.toBeNull();
  });

  test("says that it starts over where the settings still have it", async () => {
    const { err } = await run(["remove", "crm", "--yes"], { file: "forward.jsonc" });
    expect(err).toContain("FORWARD_SETTINGS_FILE still has it: it starts over");
  });
});

test("a destination is no handler, whatever name is given", async () => {
  const args = ["handlers", "remove", "forward:crm", "--yes"];
  const { error } = await runCommand(registerHandlers, args, { env: database.environment });
  expect(error).toMatchObject({ code: "commander.invalidArgument" });
  expect(await readRemains(database.db, handler)).not.toBeNull();
});
