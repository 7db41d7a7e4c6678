import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, afterEach, beforeEach, expect, inject, test } from "vitest";
import { seededRandom } from "../../src/platform/random.ts";
import { killPrograms, runTallyhook } from "../e2e/program.ts";
import { eventually } from "../support/eventually.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { applyAs, orderAt, untilHandled, untilRegistered } from "./dispatch-stand.ts";

const database = useTestDatabase();
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tallyhook-handlers-"));
});
afterEach(() => rm(folder, { recursive: true }));
afterAll(killPrograms);

/** What `tallyhook/handlers` is in a deployment. */
const definition = pathToFileURL(join(inject("image"), "src/bin/handlers.js")).href;

/** One that notes each change once it was handled, and one that does so in its transaction. In TypeScript. */
const handler = (name: string, isTransactional: boolean): string => `
import { defineHandler } from ${JSON.stringify(definition)};
export default defineHandler({
  name: "${name}",
  on: ["order.created", "order.updated"],
  deadlineMs: 500,
  transactional: ${isTransactional},
  async run({ change, order, db }: any): Promise<void> {
    await db("own.begun").insert({ handler: "${name}", seq: change.seq });
    await new Promise((resolve) => setTimeout(resolve, 20));
    await db("own.done").insert({ handler: "${name}", seq: change.seq, id: order.id });
  },
});
`;

test("what a killed process was running is taken up again: each change in its order at least once, in a transaction exactly once", async () => {
  const { db } = database;
  await db.raw(
    `create schema own;
     create table own.begun (n serial, handler text, seq bigint);
     create table own.done (n serial, handler text, seq bigint, id text)`,
  );
  await writeFile(join(folder, "plain.ts"), handler("plain", false));
  await writeFile(join(folder, "exact.ts"), handler("exact", true));
  const environment = {
    ...database.environment,
    TALLYHOOK_HANDLERS: folder,
    ADMIN_PORT: "0",
  };
  const start = () => runTallyhook(["handlers", "run"], environment);
  const random = seededRandom("kills");
  const count = async (table: string) => Number((await db(table).count({ n: "*" }).first())?.["n"]);

  let program = start();
  await program.printed("the handlers run");
  await untilRegistered(db, "exact");
  await untilRegistered(db, "plain");
  for (let state = 1; state <= 5; state++) {
    const orders = Array.from({ length: 20 }, (_, n) => orderAt(`order-${n}`, state));
    await applyAs(db, `event:${state}`, ...orders);
  }
  for (let kill = 0; kill < 2; kill++) {
    const until = (await count("own.begun")) + 3 + Math.floor(random() * 20);
    await eventually("some have begun", async () => (await count("own.begun")) >= until);
    await program.kill();
    // As if the deadline and the time beyond it had passed.
    await db("dispatch.runs")
      .whereNotNull("claimed_until")
      .update({ claimed_until: db.fn.now(), due_at: db.fn.now() });
    program = start();
  }
  await untilHandled(db);
  expect(await program.stop()).toEqual({ code: 0, signal: null });

  const changes = await db("feed.changes")
    .whereIn("kind", ["order.created", "order.updated"])
    .orderBy("seq")
    .select("seq", "id");
  const doneBy = async (name: string) =>
    db("own.done")
      .where({ handler: name })
      .orderBy("n")
      .select<{ seq: string; id: string }[]>("seq", "id");
  for (const id of new Set(changes.map((change) => change.id))) {
    const told = changes.filter((change) => change.id === id).map(({ seq }) => seq);
    const of = async (name: string) =>
      (await doneBy(name)).filter((row) => row.id === id).map(({ seq }) => seq);
    expect(await of("exact")).toEqual(told);
    // A repeat follows at once: nothing of the object comes between.
    expect((await of("plain")).filter((seq, n, all) => seq !== all[n - 1])).toEqual(told);
  }
}, 300_000);
