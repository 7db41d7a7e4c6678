import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { seededRandom } from "../../src/platform/random.ts";
import { killPrograms, runTallyhook } from "../e2e/program.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { applyAs, orderAt, untilHandled, untilRegistered } from "./dispatch-stand.ts";
import { countBegun, expectAllHandled, putNotedHandlers, untilMidway } from "./noted-handlers.ts";

const database = useTestDatabase();
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tallyhook-handlers-"));
});
afterEach(() => rm(folder, { recursive: true }));
afterAll(killPrograms);

test("what a killed process was running is taken up again: each change in its order at least once, in a transaction exactly once", async () => {
  const { db } = database;
  await putNotedHandlers(db, folder);
  const environment = {
    ...database.environment,
    TALLYHOOK_HANDLERS: folder,
    ADMIN_PORT: "0",
  };
  const start = () => runTallyhook(["handlers", "run"], environment);
  const random = seededRandom("kills");

  let program = start();
  await program.printed("the handlers run");
  await untilRegistered(db, "exact");
  await untilRegistered(db, "plain");
  for (let state = 1; state <= 5; state++) {
    const orders = Array.from({ length: 20 }, (_, n) => orderAt(`order-${n}`, state));
    await applyAs(db, `event:${state}`, ...orders);
  }
  for (let kill = 0; kill < 2; kill++) {
    await untilMidway(db, (await countBegun(db)) + 3 + Math.floor(random() * 20));
    await program.kill();
    // As if the deadline and the time beyond it had passed.
    await db("dispatch.runs").whereNotNull("claimed_until").update({ claimed_until: db.fn.now(), due_at: db.fn.now() });
    program = start();
  }
  await untilHandled(db);
  expect(await program.stop()).toEqual({ code: 0, signal: null });

  const { changes, repeats } = await expectAllHandled(db);
  expect(changes).toBe(100);
  expect(repeats, "of those that are not transactional").toBeGreaterThan(0);
}, 300_000);
