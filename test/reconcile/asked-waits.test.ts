import { afterEach, beforeEach, expect, test } from "vitest";
import { ServiceUnavailableError } from "../../src/core/client/service-errors.ts";
import { createLog } from "../../src/platform/log.ts";
import { AskedToWaitError, createPatience } from "../../src/parts/reconcile/patience.ts";
import { reconcile } from "../../src/parts/reconcile/reconcile.ts";
import { readRunLease } from "../../src/parts/reconcile/runs/run-lease.ts";
import { defaultReconcileSettings } from "../../src/parts/reconcile/settings.ts";
import type { WalkProgress } from "../../src/parts/reconcile/walk/walk-all.ts";
import { type HostileService, refusal, startHostileService } from "./hostile-service.ts";
import { type ReconcileStand, createReconcileStand } from "./reconcile-stand.ts";

let service: HostileService;
let stand: ReconcileStand;

beforeEach(async () => {
  service = await startHostileService();
  stand = await createReconcileStand(service.url);
});

afterEach(async () => {
  await stand.close();
  await service.close();
});

const askingFor = (retryAfter: string) => ({
  ...refusal(429, "rate_limit_exceeded"),
  headers: { "retry-after": retryAfter },
});
const waitsMs = async (): Promise<number[]> => {
  const { rows } = await stand.database.db.raw<{ rows: { ms: number }[] }>(
    `select extract(epoch from resume_after - finished_at)::float8 * 1000 as ms from reconcile.runs order by id`,
  );
  return rows.map(({ ms }) => Math.round(ms / 60_000) * 60_000);
};

const dayMs = 86_400_000;

test.each([
  ["seconds, on the second page", "86400", 1],
  ["a date 400 days ahead, on the second page", new Date(Date.now() + 400 * dayMs).toUTCString(), 1],
  ["a number without end, on the first call", "9".repeat(400), 0],
])("a run that is asked for a long wait (%s) ends at once and says when it may go on", async (_, asked, from) => {
  service.quirks = {
    maxLimit: 10,
    instead: ({ list, nth }) => (list === "orders" && nth >= from ? askingFor(asked) : undefined),
  };
  const result = await stand.run();
  expect(result).toMatchObject({
    complete: false,
    error: expect.stringMatching(/answered 429 .*asks to wait 60 minutes/s),
  });
  expect(await waitsMs()).toEqual([3_600_000]);
  expect(await readRunLease(stand.database.db)).toMatchObject({ isOver: true });
});

test("a recheck that is asked for a long wait ends the run in the same way, to be resumed", async () => {
  await stand.run();
  await stand.database.db("mirror.orders").where({ id: "order-0003" }).update({ total: 1 });
  let isBusy = true;
  service.quirks = {
    object: (object) => (isBusy && object?.id === "order-0003" ? askingFor("1200") : undefined),
  };
  expect(await stand.run()).toMatchObject({ complete: false, run: { id: 2 } });
  expect((await waitsMs()).at(-1)).toBe(1_200_000);
  isBusy = false;
  // Not this stand's client, which obeys as well.
  const other = await createReconcileStand(service.url, { database: stand.database });
  expect(await other.run()).toMatchObject({ complete: true, run: { id: 2 }, resumeAfter: null });
  await other.close();
});

test("a run is put off as well where the service asks for it while the account is checked", async () => {
  await stand.run();
  service.quirks = { object: () => askingFor("1200") };
  expect(await stand.run()).toMatchObject({
    complete: false,
    error: expect.stringMatching(/answered 429 .*asks to wait 20 minutes/s),
  });
  expect((await waitsMs()).at(-1)).toBe(1_200_000);
});

test("a wait that a run takes is told, with its reason, and a person can end it", async () => {
  service.quirks = { instead: ({ nth }) => (nth > 0 ? askingFor("590") : undefined) };
  const stop = new AbortController();
  const told: WalkProgress[] = [];
  const run = reconcile(
    stand.deps,
    { ...defaultReconcileSettings, graceMs: 0 },
    { kind: "full" },
    {
      signal: stop.signal,
      onProgress(progress) {
        if (progress.waitReason === null) return;
        told.push(progress);
        stop.abort(new Error("stopped by a person"));
      },
    },
  );
  await expect(run).rejects.toThrow("stopped by a person");
  expect(told).toMatchObject([{ waitMs: 590_000, waitReason: expect.stringContaining("answered 429") }]);
});

const asking = (retryAfterMs: number | null) =>
  new ServiceUnavailableError(
    "answered 429",
    { method: "GET", path: "/orders", attempts: 1, status: 429, requestId: null },
    { retryAfterMs },
  );

/** A run's patience by a clock that its waits move, and the waits. */
function patienceOfARun() {
  let now = 0;
  const waits: number[] = [];
  const patience = createPatience({
    clock: { now: () => new Date(now) },
    log: createLog({ level: "silent", name: "test" }),
    signal: new AbortController().signal,
    onWait: (ms) => waits.push(ms),
    sleep: () => Promise.resolve(),
  });
  return { patience, waits, pass: (ms: number) => void (now += ms) };
}

test("waits of a run count together, waits side by side once", async () => {
  const { patience, waits, pass } = patienceOfARun();
  await Promise.all([1, 2, 3, 4].map(() => patience.waitAfter(asking(240_000), 1)));
  pass(240_000);
  await patience.waitAfter(asking(300_000), 1);
  pass(300_000);
  await patience.waitAfter(asking(null), 1);
  await expect(patience.waitAfter(asking(null), 3)).rejects.toThrow(ServiceUnavailableError);
  await expect(patience.waitAfter(asking(120_000), 1)).rejects.toThrow(AskedToWaitError);
  expect(waits).toEqual([240_000, 240_000, 240_000, 240_000, 300_000, 5_000]);
});

test("a service that asks for no time, again and again, is asked 120 times and no more", async () => {
  const { patience, waits, pass } = patienceOfARun();
  const asked = patience.ask(() => {
    pass(waits.at(-1) ?? 0);
    return Promise.reject(asking(0));
  });
  await expect(asked).rejects.toThrow(AskedToWaitError);
  expect(waits).toEqual(Array.from({ length: 120 }, () => 5_000));
});
