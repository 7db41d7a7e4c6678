import { afterAll, beforeAll, expect, test } from "vitest";
import { loadConfig } from "../../src/app/config/config.ts";
import { takeOrders } from "../../src/parts/reconcile/ordered-runs.ts";
import { reconcileDeps, reconcileSettings } from "../../src/parts/reconcile/reconciliation.ts";
import { createRuntime } from "../../src/app/create-runtime.ts";
import type { Runtime } from "../../src/app/runtime.ts";
import { createLog } from "../../src/platform/log.ts";
import { inTransaction } from "../../src/platform/postgres/transactions.ts";
import { lastOrder, orderRun, orderTakers, withdrawOrder } from "../../src/parts/reconcile/runs/run-orders.ts";
import { readRunLease } from "../../src/parts/reconcile/runs/run-lease.ts";
import { testKey } from "../../src/parts/sandbox/engine/keys.ts";
import { type HostileService, never, refusal, startHostileService } from "../reconcile/hostile-service.ts";
import { type TestDatabase, createTestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { allParts } from "../../src/main/parts.ts";

let database: TestDatabase;
let service: HostileService;
let runtime: Runtime;
const workers: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  service = await startHostileService(3);
  const env = {
    DATABASE_URL: database.url,
    SVC_BASE_URL: service.url,
    SVC_API_KEY: testKey,
    RECONCILE_GRACE_SECONDS: "0",
  };
  runtime = createRuntime(allParts, loadConfig(env), createLog({ level: "silent", name: "test" }));
  for (const _ of [1, 2]) {
    workers.push(takeOrders(await reconcileDeps(runtime), reconcileSettings(runtime)));
  }
});

afterAll(async () => {
  for (const worker of workers) await worker.close();
  await runtime.close();
  await service.close();
  await database.destroy();
});

const order = (kind: "full" | "range", reportOnly = false) =>
  orderRun(database.db, {
    kind,
    rangeFrom: null,
    rangeTo: kind === "range" ? new Date(Date.now() - 86_400_000) : null,
    reportOnly,
    orderedBy: "ada@example.com",
  });
const ended = () =>
  eventually("the order ends", async () => {
    const last = await lastOrder(database.db);
    return last !== null && last.endedAt !== null && last;
  });

test("what a person orders is one run, however many workers look", async () => {
  // Both are of one process.
  await eventually("the workers say that they are there", async () => {
    const { alive } = await orderTakers(database.db);
    return alive === 1;
  });
  const made = await order("full");
  expect(await ended()).toMatchObject({ outcome: "done", error: null });
  expect(await database.db("reconcile.runs").select("run_key", "kind", "state")).toEqual([
    { run_key: made?.runKey, kind: "full", state: "complete" },
  ]);
});

test("an order for a range that only reports is such a run", async () => {
  await order("range", true);
  await ended();
  const [run] = await database.db("reconcile.runs").orderBy("id", "desc").limit(1);
  expect(run).toMatchObject({ kind: "range", report_only: true, state: "complete" });
});

test("an order that is taken back after a worker has seen it is not begun", async () => {
  const before = await database.db("reconcile.runs").pluck("run_key");
  const asked = service.requests.length;
  service.quirks = { instead: () => ({ body: never }) };
  const made = await order("full");
  await eventually("a worker asks the service", async () => service.requests.length > asked);
  expect(await inTransaction(database.db, (trx) => withdrawOrder(trx, made?.id ?? 0))).toMatchObject({
    outcome: "withdrawn",
  });
  service.quirks = {};
  service.breakConnections();
  await eventually("the worker is done with it", async () => {
    const lease = await readRunLease(database.db);
    return lease?.isOver === true;
  });
  expect(await database.db("reconcile.runs").pluck("run_key")).toEqual(before);
  expect(await lastOrder(database.db)).toMatchObject({ outcome: "withdrawn", error: null });
});

test("an order that the service refuses ends as failed, and says why", async () => {
  service.quirks = { instead: () => refusal(401, "invalid_api_key") };
  await order("full");
  expect(await ended()).toMatchObject({
    outcome: "failed",
    error: expect.stringContaining("invalid_api_key"),
  });
});

test("an order that the service asks to come later stays open, asks nothing meanwhile, and is done then", async () => {
  let isBusy = true;
  service.quirks = {
    instead: () => (isBusy ? { ...refusal(429, "rate_limit_exceeded"), headers: { "retry-after": "660" } } : undefined),
  };
  const asked = service.requests.length;
  await order("full");
  await eventually("the run is put off", async () => {
    const row = await database.db("reconcile.runs").whereNotNull("resume_after").first();
    return row !== undefined;
  });
  isBusy = false;
  expect(service.requests.length).toBe(asked + 1);
  expect(await lastOrder(database.db)).toMatchObject({ endedAt: null });
  await database.db("reconcile.runs").update({ resume_after: database.db.raw("clock_timestamp()") });
  await eventually("a worker asks again", async () => {
    const row = await database.db("reconcile.runs").whereNotNull("resume_after").first();
    return row !== undefined;
  });
});
