import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Knex } from "knex";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { type Random, seededRandom } from "../../src/platform/random.ts";
import { applyAs, orderAt, untilHandled, untilRegistered } from "../dispatch/dispatch-stand.ts";
import {
  countBegun,
  expectAllHandled,
  putNotedHandlers,
  untilMidway,
} from "../dispatch/noted-handlers.ts";
import { layOutDeployment } from "../e2e/deployment.ts";
import { type Program, killPrograms, runTallyhook } from "../e2e/program.ts";
import { eventually } from "../support/eventually.ts";
import { childrenOf, isGroupAlive, signalIfThere } from "../support/process-tree.ts";
import { useTestDatabase } from "../support/use-database.ts";

const database = useTestDatabase();
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tallyhook-handlers-"));
});
afterEach(() => rm(folder, { recursive: true }));
afterAll(killPrograms);

const [kills, objects, statesAtOnce, mostWaiting] = [50, 2_000, 40, 400];

/** `all`: the worker and what it has started. Where it has started nothing, the worker is killed in any case. */
const victims = ["worker", "children", "all"] as const;

test("a worker that is killed fifty times while handlers run, alone, with its children, or its children alone, loses no change", async () => {
  const { db } = database;
  await putNotedHandlers(db, folder);
  const { environment } = await layOutDeployment({ databaseUrl: database.url });
  const start = async (): Promise<Program> => {
    const worker = runTallyhook(["worker"], { ...environment, TALLYHOOK_HANDLERS: folder });
    await worker.printed("the worker runs");
    return worker;
  };
  const random = seededRandom("handler kills");
  const killed = { worker: 0, children: 0, all: 0 };
  const groups: number[] = [];

  let worker = await start();
  await untilRegistered(db, "exact");
  await untilRegistered(db, "plain");
  const writing = new AbortController();
  const written = writeChanges(db, seededRandom("handler kills, changes"), writing.signal);
  for (let kill = 0; kill < kills; kill++) {
    await untilMidway(db, (await countBegun(db)) + 3 + Math.floor(random() * 40));
    const victim = victims[Math.floor(random() * victims.length)] ?? "all";
    const children = childrenOf(worker.pid);
    killed[victim === "children" && children.length === 0 ? "worker" : victim]++;
    if (victim === "children" && children.length > 0) {
      for (const child of children) signalIfThere(child, "SIGKILL");
      continue;
    }
    groups.push(worker.pid);
    if (victim === "all") await worker.kill();
    else signalIfThere(worker.pid, "SIGKILL");
    worker = await start();
  }
  writing.abort();
  await written;
  // What was claimed at the last kill comes again when its lease has ended.
  await untilHandled(db, { withinMs: 180_000 });
  expect(await worker.stop()).toEqual({ code: 0, signal: null });

  const { changes, repeats } = await expectAllHandled(db);
  console.log(JSON.stringify({ killed, changes, repeats }));
  expect(repeats, "of those that are not transactional").toBeGreaterThan(0);
  expect(groups.filter(isGroupAlive)).toEqual([]);
}, 1_800_000);

/** States of random orders, as many as the handlers keep up with. */
async function writeChanges(db: Knex, random: Random, signal: AbortSignal): Promise<void> {
  const states = new Map<number, number>();
  for (let batch = 1; !signal.aborted; batch++) {
    const chosen = new Set(
      Array.from({ length: statesAtOnce }, () => Math.floor(random() * objects)),
    );
    const orders = [...chosen].map((n) => {
      const state = (states.get(n) ?? 0) + 1;
      states.set(n, state);
      return orderAt(`order-${n}`, state);
    });
    await applyAs(db, `event:${batch}`, ...orders);
    await eventually(
      "the handlers keep up",
      async () =>
        signal.aborted ||
        Number(
          (await db("dispatch.runs").whereNull("claimed_until").count({ n: "*" }).first())?.["n"],
        ) < mostWaiting,
      // Handlers whose process is killed again and again are started later each time.
      { withinMs: 1_500_000 },
    );
  }
}
