import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Span, planSpans } from "../../../src/platform/postgres/number-partitions.ts";

const dayMs = 86_400_000;
const monday = new Date("2026-11-23T00:00:00Z");
const daysAfter = (days: number): Date => new Date(monday.getTime() + days * dayMs);

describe("the plan of numbers", () => {
  const span = (from: number, to: number): Span => ({ name: from, from, to });
  const million = 1_000_000;

  test("always has two partitions ahead of the one that is filled", () => {
    const plan = planSpans({ spans: [span(1, 10 * million)], lastNumber: 5, presentSince: monday }, monday);
    expect(plan.create).toEqual([span(10 * million, 20 * million), span(20 * million, 30 * million)]);
    expect(plan.jumpTo).toBeNull();
  });

  test("goes on to the next one after a week, unless this one is nearly full", () => {
    const spans = [span(1, 10 * million), span(10 * million, 20 * million)];
    const jump = (lastNumber: number, days: number) =>
      planSpans({ spans, lastNumber, presentSince: monday }, daysAfter(days)).jumpTo;
    expect(jump(50, 6.9)).toBeNull();
    expect(jump(50, 7)).toBe(10 * million);
    expect(jump(10 * million - 1_000, 7)).toBeNull();
  });

  test("goes on where the numbers have no partition, and only to one that is there already", () => {
    const spans = [span(1, 10 * million)];
    const facts = { lastNumber: 12 * million, presentSince: null };
    const { create, jumpTo } = planSpans({ spans, ...facts }, monday);
    expect([create[0]?.from, jumpTo]).toEqual([20 * million, null]);
    expect(planSpans({ spans: [...spans, ...create], ...facts }, monday).jumpTo).toBe(20 * million);
    const since = { lastNumber: 5, presentSince: monday };
    expect(planSpans({ spans, ...since }, daysAfter(8)).jumpTo).toBeNull();
  });

  test("makes partitions that hold four weeks at the present rate", () => {
    const spans = [span(1, 10 * million)];
    const { create } = planSpans({ spans, lastNumber: 7 * million, presentSince: monday }, daysAfter(1));
    for (const { from, to } of create) expect(to - from).toBe(200 * million);
  });

  test("never overlaps what is there, whatever is there", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 50 }), { maxLength: 5 }),
        fc.nat(600 * million),
        fc.nat(30),
        (sizes, lastNumber, days) => {
          let from = 1;
          const spans = sizes.map((size) => {
            const made = span(from, from + size * million);
            from = made.to;
            return made;
          });
          const { create } = planSpans({ spans, lastNumber, presentSince: monday }, daysAfter(days));
          const all = [...spans, ...create];
          for (const [n, { from: next }] of all.entries()) {
            expect(next).toBeGreaterThanOrEqual(all[n - 1]?.to ?? 1);
          }
          expect(all.filter((each) => each.from > lastNumber).length).toBeGreaterThanOrEqual(2);
        },
      ),
    );
  });
});
