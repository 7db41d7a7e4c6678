import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createDeadlines } from "../../src/core/receiver/limits.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("an item expires once, within its time and not a tick too early, whenever it came", () => {
  for (let offsetMs = 0; offsetMs < 700; offsetMs += 30) {
    const expired: number[] = [];
    const deadlines = createDeadlines<string>(() => expired.push(Date.now()), {
      limitMs: 1_000,
      tickMs: 100,
    });
    vi.advanceTimersByTime(offsetMs);
    const begun = Date.now();
    deadlines.start("request");
    vi.advanceTimersByTime(5_000);
    expect(expired).toHaveLength(1);
    expect((expired[0] ?? 0) - begun).toBeGreaterThanOrEqual(900);
    expect((expired[0] ?? 0) - begun).toBeLessThanOrEqual(1_000);
    deadlines.close();
  }
});

test("an item that is done does not expire", () => {
  const onExpired = vi.fn();
  const deadlines = createDeadlines<string>(onExpired, { limitMs: 1_000, tickMs: 100 });
  const tickets = ["first", "second", "third", "last"].map((item) => deadlines.start(item));
  for (const ticket of [tickets[1], tickets[0], tickets[3]]) if (ticket) deadlines.end(ticket);
  expect(deadlines.items()).toEqual(["third"]);
  vi.advanceTimersByTime(5_000);
  expect(onExpired.mock.calls).toEqual([["third"]]);
  for (const ticket of tickets) deadlines.end(ticket);
  expect(deadlines.items()).toEqual([]);
  deadlines.close();
});

test("an item may be done or come in while others expire", () => {
  const seen: string[] = [];
  const deadlines = createDeadlines<string>(
    (item) => {
      seen.push(item);
      if (item === "first") deadlines.start("second");
    },
    { limitMs: 1_000, tickMs: 100 },
  );
  deadlines.start("first");
  vi.advanceTimersByTime(1_000);
  expect(seen).toEqual(["first"]);
  vi.advanceTimersByTime(1_000);
  expect(seen).toEqual(["first", "second"]);
  deadlines.close();
});
