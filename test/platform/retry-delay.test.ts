import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type RetryPolicy, retryDelayMs } from "../../src/platform/retry-delay.ts";
import { eventRetryPolicy } from "../../src/core/worker/apply-batch.ts";
import { refetchRetryPolicy } from "../../src/core/worker/refetch.ts";

const policies: fc.Arbitrary<RetryPolicy> = fc
  .record({
    maxAttempts: fc.integer({ min: 1, max: 100 }),
    baseDelayMs: fc.integer({ min: 1, max: 60_000 }),
    factor: fc.integer({ min: 1, max: 100_000 }),
  })
  .map(({ factor, ...rest }) => ({ ...rest, maxDelayMs: rest.baseDelayMs * factor }));
const randoms = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const attempts = fc.integer({ min: 1, max: 200 });

describe("the delay after a failure", () => {
  test("doubles up to the cap, and jitter takes at most half of it away", () => {
    fc.assert(
      fc.property(policies, attempts, randoms, (policy, attempt, random) => {
        const endless = { ...policy, maxAttempts: Number.POSITIVE_INFINITY };
        const full = Math.min(policy.maxDelayMs, policy.baseDelayMs * 2 ** (attempt - 1));
        const delay = retryDelayMs(endless, attempt, () => random);
        expect(delay).toBeGreaterThanOrEqual(Math.floor(full / 2));
        expect(delay).toBeLessThanOrEqual(full);
        expect(Number.isInteger(delay)).toBe(true);
      }),
    );
  });

  test("never shrinks from one failure to the next, the jitter being equal, and ends at the cap", () => {
    fc.assert(
      fc.property(policies, attempts, randoms, (policy, attempt, random) => {
        const endless = { ...policy, maxAttempts: Number.POSITIVE_INFINITY };
        const delay = (nth: number) => retryDelayMs(endless, nth, () => random) ?? -1;
        expect(delay(attempt + 1)).toBeGreaterThanOrEqual(delay(attempt));
        expect(retryDelayMs(endless, 1_000_000, () => 0)).toBe(policy.maxDelayMs);
      }),
    );
  });

  test("is spread over the half below it, so that what failed together does not come back together", () => {
    const delays = [0, 0.25, 0.5, 0.999].map((random) => retryDelayMs(refetchRetryPolicy, 5, () => random));
    expect(delays).toEqual([16_000, 14_000, 12_000, 8_008]);
  });

  test("is none after the last attempt, and one after each before it", () => {
    fc.assert(
      fc.property(policies, attempts, randoms, (policy, attempt, random) => {
        const isLast = attempt >= policy.maxAttempts;
        expect(retryDelayMs(policy, attempt, () => random) === null).toBe(isLast);
      }),
    );
  });
});

test("an event gets 16 attempts over two to four hours, a read goes on for ever", () => {
  const delays = (random: number) =>
    Array.from({ length: 16 }, (_, n) => retryDelayMs(eventRetryPolicy, n + 1, () => random));
  expect(delays(0).slice(0, 3)).toEqual([1_000, 2_000, 4_000]);
  expect(delays(0).at(-2)).toBe(3_600_000);
  expect(delays(0).at(-1)).toBeNull();
  const hours = (random: number) => delays(random).reduce<number>((sum, delay) => sum + (delay ?? 0), 0) / 3_600_000;
  expect(hours(0), "the longest").toBeCloseTo(4.14, 2);
  expect(hours(1), "the shortest").toBeCloseTo(2.07, 2);
  expect(retryDelayMs(refetchRetryPolicy, 1_000_000, () => 0)).toBe(600_000);
});
