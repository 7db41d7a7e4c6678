import { describe, expect, it } from "vitest";
import { type Pace, createPace } from "../../src/core/client/pace.ts";

/** Starts requests as fast as the pace allows and says when they started. */
function start(pace: Pace, from: number, count: number): number[] {
  const starts: number[] = [];
  let now = from;
  for (let index = 0; index < count; index += 1) {
    now += pace.waitMs(now);
    pace.started(now);
    starts.push(now);
  }
  return starts;
}

describe("the pace", () => {
  it("does not hold anybody up before the service complains", () => {
    expect(start(createPace(), 1_000, 5)).toEqual([1_000, 1_000, 1_000, 1_000, 1_000]);
  });

  it("starts nothing while the service wants to be left alone", () => {
    const pace = createPace();
    pace.started(0);
    pace.slowDown(100, 5_000);
    expect(pace.waitMs(100)).toBe(5_000);
    expect(pace.waitMs(3_100)).toBe(2_000);
    expect(pace.waitMs(5_100)).toBe(0);
  });

  it("goes on at half the rate it had, and half of that after the next complaint", () => {
    const pace = createPace();
    for (let now = 0; now <= 10_000; now += 100) pace.started(now);
    pace.slowDown(10_000, 1_000);
    const [first = 0, second = 0] = start(pace, 11_000, 2);
    expect(second - first).toBeGreaterThan(190);
    expect(second - first).toBeLessThanOrEqual(200);
    pace.slowDown(second, 1_000);
    const [third = 0, fourth = 0] = start(pace, second + 1_000, 2);
    expect(fourth - third).toBeCloseTo(2 * (second - first));
  });

  it("counts complaints about requests that were under way together once", () => {
    const once = createPace();
    const often = createPace();
    for (const pace of [once, often]) pace.started(0);
    once.slowDown(10, 1_000);
    for (const now of [10, 11, 12, 13]) often.slowDown(now, 1_000);
    expect(start(often, 2_000, 4)).toEqual(start(once, 2_000, 4));
  });

  it("recovers slowly, and in the end altogether", () => {
    const pace = createPace();
    pace.started(0);
    for (const now of [0, 1_000, 2_000, 3_000, 4_000]) pace.slowDown(now, 500);
    const gap = (): number => {
      const [first = 0, second = 0] = start(pace, 100_000, 2);
      return second - first;
    };
    const slow = gap();
    pace.speedUp();
    expect(gap()).toBeCloseTo(slow * 0.97);
    for (let good = 0; good < 200; good += 1) pace.speedUp();
    expect(gap()).toBe(0);
  });

  it("never waits longer than the pause when the clock is set back", () => {
    const pace = createPace();
    pace.started(1_000_000);
    pace.slowDown(1_000_000, 2_000);
    expect(pace.waitMs(0)).toBe(2_000);
  });
});
