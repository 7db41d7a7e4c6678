import type { Knex } from "knex";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { createLog } from "../../src/platform/log.ts";
import { type BackendLocation, migrateQueueSchema } from "../../src/core/queue/backend.ts";
import { type JobQueue, createJobQueue } from "../../src/core/queue/job-queue.ts";
import { type RunningWorker, type WorkerOptions, startWorker } from "../../src/core/worker/start-worker.ts";
import { progressOf, storeRow } from "../inbox/stored-events.ts";
import { rowOf, sampleOrder } from "../mirror/samples.ts";
import { type ServiceStand, sendJson, serviceError, standUp } from "../client/service-stand.ts";
import { type TestDatabase, createTestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free-port.ts";
import { withBareQueue } from "../queue/backends.ts";
import { applyDeps, emptyAll, storeEvent } from "./worker-stand.ts";

const log = createLog({ level: "silent", name: "test" });
let database: TestDatabase;
let db: Knex;
let service: ServiceStand;
const open: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  database = await createTestDatabase({ poolMax: 8 });
  ({ db } = database);
  await migrateQueueSchema(database.directUrl);
  service = await standUp((request, response) => {
    if (request.url?.startsWith("/v1/orders/order-1") === true) {
      return sendJson(response, 200, sampleOrder());
    }
    // A list of disputes that never ends.
    if (request.url?.startsWith("/v1/transactions") === true) {
      const id = `sale-${request.url.length}`;
      const cursors = {
        next: `${new URL(request.url, "http://x").searchParams.get("starting_after") ?? ""}x`,
      };
      return sendJson(response, 200, { data: [{ id }], has_more: true, cursors });
    }
    return sendJson(response, 404, serviceError("resource_not_found"));
  });
});
afterAll(async () => {
  await service.close();
  await database.destroy();
});
beforeEach(() => emptyAll(db));
afterEach(async () => {
  // In the reverse order of their making: a worker before its queue.
  for (const each of open.splice(0).reverse()) await each.close();
});

function openQueue(location: BackendLocation = { kind: "postgres", url: database.directUrl }): JobQueue {
  const queue = createJobQueue({ log }, location);
  open.push(queue);
  return queue;
}

function work(queue: JobQueue, options: Partial<WorkerOptions> = {}): RunningWorker {
  const worker = startWorker(
    {
      ...applyDeps(db),
      client: service.client,
      missingGraceMs: 1_000,
      foreignAccount: async () => null,
      queue,
    },
    { concurrency: 2, relayIntervalMs: 50, ...options },
  );
  open.push(worker);
  return worker;
}

const settled = (seq: number) =>
  eventually("the event is settled", async () => ["applied", "stale"].includes((await progressOf(db, seq)).state));

const applied = (seq: number) =>
  eventually("the event is applied", async () => (await progressOf(db, seq)).state === "applied");

describe("a running worker", () => {
  test("applies what it is told of", async () => {
    const queue = openQueue();
    work(queue, { relayIntervalMs: 3_600_000 });
    const seq = await storeEvent(db, "order.created", sampleOrder());
    await queue.add();
    await applied(seq);
    expect(await rowOf(db, "orders", "order-1")).toMatchObject({ status: "succeeded" });
  });

  test("finds what nobody told it of", async () => {
    work(openQueue());
    const raw = Buffer.from(JSON.stringify({ type: "order.created", data: { object: sampleOrder() } }));
    await applied(await storeRow(db, { raw, receivedAgoSeconds: 10 }));
  });

  test("finds what failed and is due", async () => {
    work(openQueue());
    const raw = Buffer.from(JSON.stringify({ type: "order.created", data: { object: sampleOrder() } }));
    await applied(await storeRow(db, { raw, state: "failed", attempts: 3, dueInSeconds: -1 }));
  });

  test("applies by itself while the queue is away, and reads what is wanted", async () => {
    const url = `redis://127.0.0.1:${await freePort()}`;
    const worker = work(openQueue({ kind: "redis", url }));
    const raw = Buffer.from('{"type":"order.created","data":{"object":{"id":"order-1"}}}');
    await applied(await storeRow(db, { raw, receivedAgoSeconds: 10 }));
    await eventually("the order is read", async () => (await db("mirror.orders")).length === 1);
    expect(worker.isAlive()).toBe(true);
  });

  test("applies by itself what a queue takes and gives to nobody", async () => {
    await withBareQueue({ kind: "postgres", url: database.directUrl }, async (bare) => {
      await bare.pause();
      try {
        work(openQueue());
        const raw = Buffer.from(JSON.stringify({ type: "order.created", data: { object: sampleOrder() } }));
        const given = [
          { state: "received", receivedAgoSeconds: 10 },
          { state: "failed", attempts: 3, dueInSeconds: -1 },
        ] as const;
        const seqs = [];
        for (const each of given) seqs.push(await storeRow(db, { raw, ...each }));
        for (const seq of seqs) await settled(seq);
      } finally {
        await bare.resume();
      }
    });
  });

  test.each([
    ["inbox.progress", { statements: 15_000, reads: 300_000 }],
    ["inbox.fetches", { statements: 300_000, reads: 2_000 }],
  ])(
    "is not alive while %s is locked, though the clock is set back, and is afterwards",
    async (table, limits) => {
      const worker = work(openQueue(), { stalledAfterMs: limits });
      expect(worker.isAlive()).toBe(true);
      const blocker = await db.transaction();
      await blocker.raw(`lock table ${table} in access exclusive mode`);
      vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - 3_600_000 });
      try {
        await eventually("it is not alive", () => !worker.isAlive(), { withinMs: 60_000 });
      } finally {
        vi.useRealTimers();
        await blocker.rollback();
      }
      await eventually("it is alive", () => worker.isAlive());
    },
    120_000,
  );

  test("reads what is wanted while a list of disputes is long, and does not wait for its end to close", async () => {
    const worker = work(openQueue());
    const raw = Buffer.from('{"type":"dispute.created","data":{"object":{"id":"dispute"}}}');
    await applied(await storeRow(db, { raw, receivedAgoSeconds: 10 }));
    await eventually("the walk is under way", async () => {
      const walk = await db("inbox.fetches").where({ resource: "disputed-transactions" }).first();
      return (walk as { attempts: number } | undefined)?.attempts === 1;
    });
    const thin = Buffer.from('{"type":"order.created","data":{"object":{"id":"order-1"}}}');
    await applied(await storeRow(db, { raw: thin, receivedAgoSeconds: 10 }));
    await eventually("the order is read", async () => (await db("mirror.orders")).length === 1);
    await worker.close();
    expect(await db("inbox.fetches").pluck("resource")).toContain("disputed-transactions");
  });

  test("runs its tasks, also while the queue is away, and none that another version left", async () => {
    const url = `redis://127.0.0.1:${await freePort()}`;
    await db("inbox.tasks").insert({ name: "gone" });
    let runs = 0;
    const run = async (): Promise<void> => void runs++;
    const worker = work(openQueue({ kind: "redis", url }), {
      tasks: { count: { schedule: { everyMs: 100 }, run } },
    });
    await eventually("the task ran twice", () => runs >= 2);
    expect(worker.isAlive()).toBe(true);
    expect(await db("inbox.tasks").where({ starts: 0 }).pluck("name")).toEqual(["gone"]);
  });

  test("finishes what it is at when it closes, and takes nothing more", async () => {
    const queue = openQueue();
    const worker = work(queue, { relayIntervalMs: 3_600_000 });
    await queue.add();
    const blocker = await db.transaction();
    await blocker.raw("lock table mirror.orders in exclusive mode");
    const first = await storeEvent(db, "order.created", sampleOrder());
    await eventually("the batch waits", async () => {
      const { rows } = await db.raw<{ rows: unknown[] }>(
        "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
      );
      return rows.length > 0;
    });
    const second = await storeEvent(db, "order.created", sampleOrder({ id: "order-2" }));
    const closing = worker.close();
    await blocker.rollback();
    await closing;
    expect((await progressOf(db, first)).state).toBe("applied");
    expect((await progressOf(db, second)).state).toBe("received");
  });
});
