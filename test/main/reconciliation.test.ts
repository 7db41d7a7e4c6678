import { afterAll, beforeAll, expect, test } from "vitest";
import { reconcileTasks } from "../../src/parts/reconcile/reconciliation.ts";
import { loadConfig } from "../../src/app/config/config.ts";
import { createLog } from "../../src/platform/log.ts";
import { nightlyKey } from "../../src/parts/reconcile/runs/runs.ts";
import { createRuntime } from "../../src/app/create-runtime.ts";
import type { Runtime } from "../../src/app/runtime.ts";
import { testKey } from "../../src/parts/sandbox/engine/keys.ts";
import { type HostileService, refusal, startHostileService } from "../reconcile/hostile-service.ts";
import { type TestDatabase, createTestDatabase } from "../support/database.ts";
import { emptyTables } from "../support/empty-tables.ts";
import { allParts } from "../../src/main/parts.ts";

let database: TestDatabase;
let service: HostileService;
let runtimes: Runtime[];

beforeAll(async () => {
  database = await createTestDatabase();
  service = await startHostileService();
  const log = createLog({ level: "silent", name: "test" });
  runtimes = [1, 2].map(() => createRuntime(allParts, loadConfig(env()), log));
});

const env = () => ({
  DATABASE_URL: database.url,
  SVC_BASE_URL: service.url,
  SVC_API_KEY: testKey,
  RECONCILE_GRACE_SECONDS: "0",
});

afterAll(async () => {
  for (const runtime of runtimes) await runtime.close();
  await service.close();
  await database.destroy();
});

const runs = () => database.db("reconcile.runs").orderBy("id").select("run_key", "kind", "state");
const untilStopped = new AbortController().signal;
const tasksOf = async (n: number) => reconcileTasks(runtimes[n] as Runtime);

test("a deployment that never reconciled has missed no night", async () => {
  await (await tasksOf(0))["reconcile-catch-up"]?.run(untilStopped);
  expect(await runs()).toEqual([]);
});

test("however many schedulers fire, a night is one run", async () => {
  const [one, other] = [await tasksOf(0), await tasksOf(1)];
  await Promise.all([
    one["reconcile"]?.run(untilStopped),
    other["reconcile"]?.run(untilStopped),
    one["reconcile"]?.run(untilStopped),
  ]);
  await other["reconcile"]?.run(untilStopped);
  expect(await runs()).toEqual([
    {
      run_key: expect.stringMatching(/^nightly:\d{4}-\d\d-\d\dT03:30$/),
      kind: "nightly",
      state: "complete",
    },
  ]);
});

test("a night that was missed is caught up, once", async () => {
  await database.db.raw(
    "update reconcile.runs set run_key = 'nightly:long-ago', started_at = started_at - interval '3 days'",
  );
  const tasks = await tasksOf(0);
  await tasks["reconcile-catch-up"]?.run(untilStopped);
  await tasks["reconcile-catch-up"]?.run(untilStopped);
  expect(await runs()).toHaveLength(2);
});

test("a night that was interrupted is gone on with", async () => {
  const { db } = database;
  const last = await db("reconcile.runs").max<{ max: string }[]>("id as max");
  const id = last[0]?.max;
  await db("reconcile.runs").where({ id }).update({ state: "running" });
  await db("reconcile.coverage").where({ run: id, slice: 2 }).update({ state: "pending", pages: 0, rows: 0 });
  await db("reconcile.daily_sums").where({ run: id, slice: 2 }).delete();
  await (await tasksOf(0))["reconcile-catch-up"]?.run(untilStopped);
  expect(await runs()).toMatchObject([{}, { state: "complete" }]);
  // Killed while it confirmed: every slice is read.
  await db("reconcile.runs").where({ id }).update({ state: "running" });
  await (await tasksOf(0))["reconcile-catch-up"]?.run(untilStopped);
  expect(await runs()).toMatchObject([{}, { state: "complete" }]);
});

test("a night during whose confirmation the service was away is gone on with", async () => {
  const { db } = database;
  await db("mirror.orders").where({ id: "order-0003" }).update({ total: 1 });
  const id = (await db("reconcile.runs").max("id as id").first())?.id;
  await db("reconcile.runs").where({ id }).update({ state: "incomplete" });
  await db.raw(
    `insert into reconcile.doubts (run, resource, id, why, noticed_at, due_at)
     values (?, 'order', 'order-0003', 'mismatch', now(), now())`,
    [id],
  );
  await (await tasksOf(0))["reconcile-catch-up"]?.run(untilStopped);
  expect(await runs()).toMatchObject([{}, { state: "complete" }]);
  const [order] = await db("mirror.orders").where({ id: "order-0003" }).select("total");
  expect(order).toEqual({ total: "1003" });
});

test("a night on which the service refuses its first call is told once, and done once it answers", async () => {
  const { db } = database;
  const alerts = () => db("alerts.alerts").where({ rule: "reconcile_incomplete" }).pluck<string[]>("state");
  await emptyTables(db, ["reconcile.runs"]);
  await emptyTables(db, ["alerts.alerts"]);
  await (await tasksOf(0))["reconcile"]?.run(untilStopped);
  await db.raw("update reconcile.runs set run_key = 'nightly:long-ago', started_at = started_at - interval '3 days'");
  const tasks = await tasksOf(0);
  service.quirks = { instead: () => refusal(401, "invalid_api_key") };
  try {
    await tasks["reconcile"]?.run(untilStopped);
    await tasks["reconcile-catch-up"]?.run(untilStopped);
    await tasks["reconcile-catch-up"]?.run(untilStopped);
  } finally {
    service.quirks = {};
  }
  const refused = { run_key: expect.stringMatching(/^refused:nightly:/), state: "incomplete" };
  expect(await runs()).toMatchObject([{}, refused]);
  expect(await alerts()).toEqual(["open"]);
  await tasks["reconcile-catch-up"]?.run(untilStopped);
  expect(await runs()).toMatchObject([{}, refused, { state: "complete" }]);
  expect(await alerts()).toEqual(["resolved"]);
});

const busy = {
  instead: () => ({ ...refusal(429, "rate_limit_exceeded"), headers: { "retry-after": "86400" } }),
};
const endWait = () => database.db("reconcile.runs").update({ resume_after: database.db.raw("clock_timestamp()") });
/** The tasks of a process that the service has not asked to wait. */
async function inFreshProcess<T>(use: (tasks: Awaited<ReturnType<typeof reconcileTasks>>) => Promise<T>): Promise<T> {
  const runtime = createRuntime(allParts, loadConfig(env()), createLog({ level: "silent", name: "test" }));
  try {
    return await use(await reconcileTasks(runtime));
  } finally {
    await runtime.close();
  }
}

test.each([
  ["its first call", 0],
  ["a page", 1],
])("a night whose service asks at %s to come later is taken up then, and not before", async (_, from) => {
  await emptyTables(database.db, ["reconcile.runs"]);
  service.requests.length = 0;
  service.quirks = {
    instead: ({ nth }) => (nth >= from ? busy.instead() : undefined),
  };
  try {
    await inFreshProcess(async (tasks) => tasks["reconcile"]?.run(untilStopped));
    const asked = service.requests.length;
    // Neither the schedule nor the check of any process asks before.
    await inFreshProcess(async (tasks) => {
      await tasks["reconcile"]?.run(untilStopped);
      await tasks["reconcile-catch-up"]?.run(untilStopped);
    });
    expect(service.requests.length).toBe(asked);
    await endWait();
    await inFreshProcess(async (tasks) => tasks["reconcile-catch-up"]?.run(untilStopped));
    expect(service.requests.length).toBeGreaterThan(asked);
    const askedAgain = service.requests.length;
    await inFreshProcess(async (tasks) => tasks["reconcile-catch-up"]?.run(untilStopped));
    expect(service.requests.length).toBe(askedAgain);
  } finally {
    service.quirks = {};
  }
  await endWait();
  await inFreshProcess(async (tasks) => tasks["reconcile-catch-up"]?.run(untilStopped));
  const nights = (await runs()).filter(({ run_key: key }) => key.startsWith("nightly"));
  expect(nights).toMatchObject([{ state: "complete" }]);
});

test("a wait that reaches further than any is believed, as after a change of the clock, keeps nobody", async () => {
  await database.db("reconcile.runs").update({ resume_after: new Date(Date.now() + 30 * 86_400_000) });
  const asked = service.requests.length;
  await database.db.raw(
    "update reconcile.runs set started_at = started_at - interval '3 days', run_key = 'x' || run_key",
  );
  await inFreshProcess(async (tasks) => tasks["reconcile-catch-up"]?.run(untilStopped));
  expect(service.requests.length).toBeGreaterThan(asked);
});

test("a night bears the minute at which it was due, and one that daylight saving repeats is one", () => {
  const key = (due: string) => nightlyKey(new Date(due), "Europe/Madrid");
  expect(key("2025-03-01T22:59:00Z")).toBe("nightly:2025-03-01T23:59");
  expect(key("2025-03-01T05:00:00Z")).not.toBe(key("2025-03-01T11:00:00Z"));
  expect(key("2025-10-26T00:30:00Z")).toBe(key("2025-10-26T01:30:00Z"));
});

test("a night that begins late, on the next day, leaves that day its own", async () => {
  await emptyTables(database.db, ["reconcile.runs"]);
  for (const now of ["2025-03-02T03:29:59Z", "2025-03-02T03:30:00Z"]) {
    const runtime = { ...(runtimes[0] as Runtime), wallClock: { now: () => new Date(now) } };
    await (await reconcileTasks(runtime))["reconcile"]?.run(untilStopped);
  }
  expect(await runs()).toMatchObject([
    { run_key: "nightly:2025-03-01T03:30" },
    { run_key: "nightly:2025-03-02T03:30" },
  ]);
});
