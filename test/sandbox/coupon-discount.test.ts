import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { coversCycle, discountOf } from "../../src/parts/sandbox/resources/coupons/coupon.ts";

const cents = fc.oneof(fc.integer({ min: 0, max: 100_000 }), fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }));
const cap = fc.option(fc.integer({ min: 1, max: 1_000_000_000 }));

/** A percentage as a whole number of units of 10^-decimals, and as the number that JSON carries. */
const percentage = fc.integer({ min: 0, max: 12 }).chain((decimals) => {
  const scale = 10 ** decimals;
  return fc.bigInt({ min: BigInt(scale), max: 100n * BigInt(scale) }).map((units) => ({
    units,
    scale: BigInt(scale),
    value: Number(`${units / BigInt(scale)}.${String(units % BigInt(scale)).padStart(decimals, "0")}`),
  }));
});

describe("the discount of a percentage", () => {
  test("is the exact floor, then capped, for every total and up to 12 decimals", () => {
    fc.assert(
      fc.property(cents, percentage, cap, (total, { units, scale, value }, max) => {
        const exact = (BigInt(total) * units) / (100n * scale);
        const expected = max !== null && exact > BigInt(max) ? BigInt(max) : exact;
        const terms = { percentage: value, amount: null, max_discount_amount: max };
        expect(BigInt(discountOf(terms, total))).toBe(expected);
      }),
      { numRuns: 2000 },
    );
  });

  test("is what doubles get wrong", () => {
    const of = (value: number, total: number) =>
      discountOf({ percentage: value, amount: null, max_discount_amount: null }, total);
    expect(Math.floor((1000 * 32.3) / 100)).toBe(322);
    expect(of(32.3, 1000)).toBe(323);
    expect(of(100, Number.MAX_SAFE_INTEGER)).toBe(Number.MAX_SAFE_INTEGER);
    expect(of(99.99999999999999, 100)).toBe(99);
  });
});

test("an amount takes off the smaller of itself and the total", () => {
  fc.assert(
    fc.property(cents, fc.integer({ min: 1, max: 1_000_000_000 }), (total, amount) => {
      const discount = discountOf({ percentage: null, amount, max_discount_amount: null }, total);
      expect(discount).toBe(total < amount ? total : amount);
    }),
  );
});

test("a discount is whole, not negative and never above the total", () => {
  fc.assert(
    fc.property(cents, percentage, cap, (total, { value }, max) => {
      const terms = { percentage: value, amount: null, max_discount_amount: max };
      const discount = discountOf(terms, total);
      expect(Number.isSafeInteger(discount) && discount >= 0 && discount <= total).toBe(true);
    }),
  );
});

test("once covers cycle 1, repeating the first n, forever all", () => {
  const covered = (duration: "once" | "repeating" | "forever", duration_in_cycles: number | null) =>
    [1, 2, 3, 4].filter((cycle) => coversCycle({ duration, duration_in_cycles }, cycle));
  expect(covered("once", null)).toEqual([1]);
  expect(covered("repeating", 3)).toEqual([1, 2, 3]);
  expect(covered("forever", null)).toEqual([1, 2, 3, 4]);
});
