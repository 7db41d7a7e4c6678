import { expect, test } from "vitest";
import { rowsDue } from "../../src/parts/reconcile/plan.ts";
import { dayMs } from "../../src/parts/reconcile/settings.ts";

const cycleStart = new Date("2025-01-01T03:30:00Z");
const night = (n: number): Date => new Date(cycleStart.getTime() + n * dayMs);

/** Walks a whole cycle and says how many rows each night read. */
function cycle(rows: number, nights: number, missed: readonly number[] = []): number[] {
  const read: number[] = [];
  let remainingRows = rows;
  for (let n = 1; n <= nights; n++) {
    if (missed.includes(n)) continue;
    const due = rowsDue({ remainingRows, cycleStart, t0: night(n) }, nights);
    read.push(due);
    remainingRows -= due;
  }
  return read;
}

const sum = (all: number[]): number => all.reduce((a, b) => a + b, 0);

test("every night reads as much, and the last one has read all", () => {
  const read = cycle(3_000, 30);
  expect(new Set(read)).toEqual(new Set([100]));
  expect(sum(cycle(3_017, 30))).toBe(3_017);
  expect(Math.max(...cycle(3_017, 30))).toBe(101);
});

test("nights that were missed are caught up before the cycle ends", () => {
  const read = cycle(3_000, 30, [5, 6, 7]);
  expect(sum(read)).toBe(3_000);
  expect(Math.max(...read)).toBeLessThan(120);
});

test("a cycle that is overdue reads all that remains at once", () => {
  expect(rowsDue({ remainingRows: 500, cycleStart, t0: night(40) }, 30)).toBe(500);
});

test("a night of 23 or 25 hours counts as one", () => {
  const hour = 3_600_000;
  const due = (t0: Date) => rowsDue({ remainingRows: 300, cycleStart, t0 }, 30);
  expect(due(new Date(night(10).getTime() - hour))).toBe(due(night(10)));
  expect(due(new Date(night(10).getTime() + hour))).toBe(due(night(10)));
});
