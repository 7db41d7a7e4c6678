import { beforeEach, expect, test } from "vitest";
import { findRun, listRuns, lockRun, readDead } from "../../src/parts/delivery/dispatch/open-runs.ts";
import { skipRun } from "../../src/parts/delivery/dispatch/manage-handlers.ts";
import { removeDone } from "../../src/parts/delivery/dispatch/runs.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { emptyDispatch } from "./dispatch-stand.ts";
import { storeRun } from "./stored-runs.ts";

const database = useTestDatabase();
beforeEach(() => emptyDispatch(database.db));

const hour = (n: number): Date => new Date(Date.UTC(2026, 0, 1, n));

/** The numbers of all runs in a state, read two at a time. */
async function numbers(state: "dead" | "failed" | "waiting"): Promise<number[]> {
  const found: number[] = [];
  for (let after = ""; ;) {
    const runs = await listRuns(database.db, { handler: "receipts", state, after, limit: 2 });
    found.push(...runs.map(({ seq }) => seq));
    const last = runs.at(-1);
    if (last === undefined) return found;
    after = last.place;
  }
}

test("runs are listed state by state, page by page, each in its order", async () => {
  const { db } = database;
  for (const seq of [5, 1, 3]) await storeRun(db, { seq, id: `dead-${seq}`, state: "dead" });
  await storeRun(db, { seq: 2, id: "dead-1", isFirst: false });
  for (const [seq, at] of [
    [9, 1],
    [8, 2],
    [7, 2],
    [6, 3],
  ] as const) {
    await storeRun(db, {
      seq,
      id: `failed-${seq}`,
      error: "E",
      failedAt: hour(at),
      dueAt: hour(at + 9),
    });
  }
  await storeRun(db, { seq: 10, id: "new", dueAt: hour(1) });
  await storeRun(db, { handler: "other", seq: 11, id: "other", state: "dead" });
  expect(await numbers("dead")).toEqual([1, 3, 5]);
  expect(await numbers("failed")).toEqual([9, 7, 8, 6]);
  expect(await numbers("waiting")).toEqual([10, 9, 7, 8, 6]);
});

test("a place that cannot be read is the beginning", async () => {
  const { db } = database;
  await storeRun(db, { seq: 1, id: "a", state: "dead" });
  await storeRun(db, { seq: 2, id: "b", failedAt: hour(1) });
  for (const after of ["x", "2026-01-01 00:00:00_1'", "9".repeat(30), "-1"]) {
    for (const [state, seq] of [
      ["dead", 1],
      ["failed", 2],
    ] as const) {
      const runs = await listRuns(db, { handler: "receipts", state, after, limit: 9 });
      expect(runs.map((run) => run.seq)).toEqual([seq]);
    }
  }
});

test("what is dead is counted up to a number, with the newest of it", async () => {
  const { db } = database;
  expect(await readDead(db, "receipts", { most: 2 })).toEqual({ count: 0, newest: null });
  for (const seq of [1, 2, 3]) await storeRun(db, { seq, id: `o-${seq}`, state: "dead" });
  await storeRun(db, { seq: 4, id: "o-4" });
  expect(await readDead(db, "receipts", { most: 2 })).toEqual({ count: 2, newest: 3 });
});

test("a run that is decided on waits for whoever marks it done, and neither waits for ever", async () => {
  const { db } = database;
  await storeRun(db, { seq: 1, id: "a", error: "E" });
  expect(await findRun(db, "receipts", 1)).toMatchObject({ error: "E", holds_up: 0 });
  const deciding = await db.transaction();
  expect(await lockRun(deciding, "receipts", 1)).toMatchObject({ seq: 1 });
  const marked = removeDone(db, "receipts", [{ seq: 1, token: 0 }]);
  expect(await skipRun(deciding, "receipts", 1)).toBe(true);
  await deciding.commit();
  expect(await marked).toEqual(new Set());
  expect(await findRun(db, "receipts", 1)).toBeNull();
});
