import { describe, expect, test } from "vitest";
import { type Trouble, afterEnd, isTold, onceItRuns } from "../../../src/parts/delivery/handlers/host/trouble.ts";

const calmMs = 1_000;
const ends = (...ranMs: number[]): Trouble | null => {
  let trouble: Trouble | null = null;
  for (const ran of ranMs) {
    if (ran > 0) trouble = onceItRuns(trouble);
    trouble = afterEnd(trouble, { why: `after ${ran}`, ranMs: ran }, calmMs);
  }
  return trouble;
};

describe("a process of handlers is told of", () => {
  test("from its first end on, until it runs again, where that was the only one", () => {
    expect(isTold(ends(500), null, calmMs)).toBe(true);
    expect(isTold(onceItRuns(ends(500)), 1, calmMs)).toBe(false);
  });

  test("while it cannot start, and no longer once it runs", () => {
    const trouble = ends(0, 0, 0);
    expect(isTold(trouble, null, calmMs)).toBe(true);
    expect(onceItRuns(trouble)).toBeNull();
  });

  test("while it runs for short times between its ends, with the last cause, until it has run for long", () => {
    const trouble = onceItRuns(ends(10, 20));
    expect(trouble?.why).toBe("after 20");
    expect(isTold(trouble, 1, calmMs)).toBe(true);
    expect(isTold(trouble, calmMs, calmMs)).toBe(true);
    expect(isTold(trouble, calmMs + 1, calmMs)).toBe(false);
  });

  test("since the first end after it had run for long", () => {
    const last = ends(10, 20, calmMs + 1);
    expect(last?.crashes).toBe(1);
    expect(isTold(onceItRuns(last), 1, calmMs)).toBe(false);
  });

  test("not at all before its first end", () => {
    expect(isTold(null, null, calmMs)).toBe(false);
  });
});
