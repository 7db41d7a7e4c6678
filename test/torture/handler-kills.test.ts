import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Knex } from "knex";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { type Random, seededRandom } from "../../src/platform/random.ts";
import { migrateQueueSchema } from "../../src/core/queue/backend.ts";
import { applyAs, orderAt, untilHandled, untilRegistered } from "../dispatch/dispatch-stand.ts";
import { countBegun, expectAllHandled, putNotedHandlers, untilMidway } from "../dispatch/noted-handlers.ts";
import { layOutDeployment } from "../e2e/deployment.ts";
import { type Program, killPrograms, runTallyhook } from "../e2e/program.ts";
import { progressOf, storeRow } from "../inbox/stored-events.ts";
import { at, sampleOrder } from "../mirror/samples.ts";
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

const [kills, objects, statesAtOnce, mostOpen] = [50, 500, 40, 400];

/** `all`: the worker and its host. The host alone is started again by its worker, the others by the test. */
const victims = ["worker", "host", "all"] as const;

test("a worker that is killed fifty times while handlers run, alone, with its host, or its host alone, loses no change", async () => {
  const { db } = database;
  const beganMs = performance.now();
  await migrateQueueSchema(database.directUrl);
  await putNotedHandlers(db, folder);
  const { environment } = await layOutDeployment({ databaseUrl: database.url });
  const start = async (): Promise<Program> => {
    const worker = runTallyhook(["worker"], { ...environment, TALLYHOOK_HANDLERS: folder });
    groups.push(worker.pid);
    await worker.printed("the worker runs");
    return worker;
  };
  const random = seededRandom("handler kills");
  const killed = { worker: 0, host: 0, all: 0 };
  const groups: number[] = [];

  let worker = await start();
  await untilRegistered(db, "exact");
  await untilRegistered(db, "plain");
  async function killAgainAndAgain(): Promise<void> {
    for (let kill = 0; kill < kills; kill++) {
      await untilMidway(db, (await countBegun(db)) + 10 + Math.floor(random() * 60));
      const victim = victims[Math.floor(random() * victims.length)] ?? "all";
      killed[victim]++;
      if (victim === "host") {
        killHost(worker);
        continue;
      }
      if (victim === "all") await worker.kill();
      else signalIfThere(worker.pid, "SIGKILL");
      worker = await start();
    }
  }
  const writing = new AbortController();
  await Promise.all([
    killAgainAndAgain().finally(() => writing.abort()),
    writeChanges(db, seededRandom("handler kills, changes"), writing.signal),
  ]);
  await untilMidway(db, (await countBegun(db)) + 1);
  await expectApplyingWithoutHost(db, worker);
  // What was claimed at the last kill comes again when its lease has ended.
  await untilHandled(db, { withinMs: 180_000 });
  expect(await worker.stop()).toEqual({ code: 0, signal: null });

  const { changes, repeats } = await expectAllHandled(db);
  const seconds = Math.round((performance.now() - beganMs) / 1_000);
  console.log(JSON.stringify({ killed, changes, repeats, seconds }));
  expect(repeats, "of those that are not transactional").toBeGreaterThan(0);
  // What a host has started itself, such as a compiler of TypeScript, ends a moment after it.
  await eventually("no process is left", () => !groups.some(isGroupAlive));
}, 1_800_000);

function killHost(worker: Program): void {
  const children = childrenOf(worker.pid);
  expect(children, "the host").toHaveLength(1);
  for (const child of children) signalIfThere(child, "SIGKILL");
}

/** Kills the host and keeps it from coming back until an event was applied. */
async function expectApplyingWithoutHost(db: Knex, worker: Program): Promise<void> {
  const broken = join(folder, "broken.mjs");
  await writeFile(broken, "export {};");
  killHost(worker);
  // Of an order that is known: what is new and older than the first event would be history.
  const { id } = await db("mirror.orders").first<{ id: string }>("id");
  const object = sampleOrder({ id, updated_at: at(100_000), subtotal: 300, total: 100 });
  const event = { id: "evt_1", type: "order.updated", created_at: object["updated_at"] };
  const raw = Buffer.from(JSON.stringify({ ...event, data: { object } }));
  const seq = await storeRow(db, { raw, eventId: event.id, receivedAgoSeconds: 60 });
  await eventually("an event is applied without the host", async () => (await progressOf(db, seq)).state === "applied");
  await rm(broken);
}

/** States of random orders, as many as the handlers keep up with. */
async function writeChanges(db: Knex, random: Random, signal: AbortSignal): Promise<void> {
  const states = new Map<number, number>();
  for (let batch = 1; !signal.aborted; batch++) {
    const chosen = new Set(Array.from({ length: statesAtOnce }, () => Math.floor(random() * objects)));
    const orders = [...chosen].map((n) => {
      const state = (states.get(n) ?? 0) + 1;
      states.set(n, state);
      return orderAt(`order-${n}`, state);
    });
    await applyAs(db, `event:${batch}`, ...orders);
    await eventually(
      "the handlers keep up",
      async () => signal.aborted || (await countOpen(db)) < mostOpen,
      // They are off for as long as a start takes, after every kill. Whether they come back is for who kills them.
      { withinMs: Number.POSITIVE_INFINITY },
    );
  }
}

/** What handlers have still to do: while no host plans runs, the changes beyond their positions too. */
async function countOpen(db: Knex): Promise<number> {
  const { rows } = await db.raw<{ rows: [{ open: number }] }>(
    `select (select count(*) from dispatch.runs)::int + coalesce(sum(
       (select count(*) from feed.changes c where c.seq > h.position)), 0)::int as open
     from dispatch.handlers h`,
  );
  return rows[0].open;
}
