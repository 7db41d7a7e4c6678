import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type FailedCallAttempt, type RetryFacts, decideRetry } from "../../src/core/client/retry-decision.ts";

const policy = { maxAttempts: 5, baseDelayMs: 500, maxDelayMs: 4_000 };
const middle = (): number => 0.5;

function answer(status: number, parts: { code?: string; retryAfterMs?: number } = {}): FailedCallAttempt {
  return { kind: "answer", status, code: null, retryAfterMs: null, ...parts };
}

function facts(failed: FailedCallAttempt, parts: Partial<RetryFacts> = {}): RetryFacts {
  return { failed, repeatable: true, attempt: 1, remainingMs: 60_000, ...parts };
}

function decide(failed: FailedCallAttempt, parts: Partial<RetryFacts> = {}): unknown {
  return decideRetry(middle, facts(failed, parts), policy);
}

describe("decideRetry", () => {
  it.each([500, 502, 503, 504, 599])("repeats after %i", (status) => {
    expect(decide(answer(status))).toEqual({ retry: true, afterMs: 375 });
  });

  it("repeats when no answer came", () => {
    expect(decide({ kind: "no_answer" })).toEqual({ retry: true, afterMs: 375 });
  });

  it.each([400, 401, 403, 404, 408, 409, 410, 413, 422, 451, 501])("gives up after %i", (status) => {
    expect(decide(answer(status))).toEqual({ retry: false, afterMs: null });
  });

  it("doubles the wait with every try, up to the longest", () => {
    const waits = [1, 2, 3, 4].map((attempt) => decide(answer(500), { attempt }));
    expect(waits).toEqual([375, 750, 1_500, 3_000].map((afterMs) => ({ retry: true, afterMs })));
    const patient = { ...policy, maxAttempts: 100 };
    expect(decideRetry(middle, facts(answer(500), { attempt: 60 }), patient)).toEqual({
      retry: true,
      afterMs: 3_000,
    });
  });

  it("waits as long as 429 asks, and a little longer", () => {
    const failed = answer(429, { retryAfterMs: 10_000 });
    expect(decideRetry(() => 0, facts(failed), policy)).toEqual({ retry: true, afterMs: 10_000 });
    expect(decide(failed)).toEqual({ retry: true, afterMs: 10_500 });
    expect(decide(answer(429, { retryAfterMs: 0 }))).toEqual({ retry: true, afterMs: 125 });
  });

  it("backs off after a 429 that asks for nothing", () => {
    expect(decide(answer(429))).toEqual({ retry: true, afterMs: 375 });
  });

  it.each(["gateway_error", "internal_error", "service_unavailable", "request_in_progress"])(
    "repeats on the transient code %s whatever the status",
    (code) => {
      expect(decide(answer(409, { code }))).toMatchObject({ retry: true });
    },
  );

  it("gives up on a conflict of idempotency keys", () => {
    expect(decide(answer(409, { code: "idempotency_key_conflict" }))).toMatchObject({
      retry: false,
    });
  });

  it("gives up after the last try and says what the service asked", () => {
    const failed = answer(429, { retryAfterMs: 9_000 });
    expect(decide(failed, { attempt: 5 })).toEqual({ retry: false, afterMs: 9_000 });
  });

  it("gives up rather than wait past the deadline", () => {
    const failed = answer(429, { retryAfterMs: 9_000 });
    expect(decide(failed, { remainingMs: 9_000 })).toEqual({ retry: false, afterMs: 9_000 });
    expect(decide(answer(500), { remainingMs: 100 })).toEqual({ retry: false, afterMs: null });
  });

  const anyFailure = fc.oneof(
    fc.constant<FailedCallAttempt>({ kind: "no_answer" }),
    fc
      .record({
        status: fc.integer({ min: 300, max: 599 }),
        code: fc.option(fc.constantFrom("internal_error", "rate_limit_exceeded", "x")),
        retryAfterMs: fc.option(fc.nat()),
      })
      .map((parts): FailedCallAttempt => ({ kind: "answer", ...parts })),
  );

  it("never repeats what must not be repeated", () => {
    fc.assert(
      fc.property(anyFailure, fc.nat(), (failed, remainingMs) => {
        expect(decide(failed, { repeatable: false, remainingMs })).toMatchObject({ retry: false });
      }),
    );
  });

  it("never waits less than asked nor until the deadline", () => {
    const chance = fc.double({ min: 0, max: 0.999, noNaN: true });
    const attempts = fc.integer({ min: 1, max: 10 });
    fc.assert(
      fc.property(anyFailure, fc.nat(), attempts, chance, (failed, remainingMs, attempt, roll) => {
        const given = facts(failed, { remainingMs, attempt });
        const decision = decideRetry(() => roll, given, policy);
        if (!decision.retry) return;
        const askedMs = failed.kind === "answer" ? (failed.retryAfterMs ?? 0) : 0;
        expect(decision.afterMs).toBeGreaterThanOrEqual(askedMs);
        expect(decision.afterMs).toBeLessThan(remainingMs);
        expect(attempt).toBeLessThan(policy.maxAttempts);
      }),
    );
  });
});
