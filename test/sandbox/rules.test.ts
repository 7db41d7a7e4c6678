import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { failureCodes } from "../../src/core/contract/decline-codes.ts";
import { coversEvent } from "../../src/core/contract/resources/webhook-endpoints.ts";
import { orderNumber } from "../../src/parts/sandbox/engine/ids.ts";
import { nextUpdatedAt } from "../../src/parts/sandbox/engine/state.ts";
import { testCards } from "../../src/parts/sandbox/resources/payment-methods/test-cards.ts";
import {
  billingDate,
  nextBillingDateAfter,
  nextRetryAt,
} from "../../src/parts/sandbox/resources/subscriptions/subscription.ts";
import { checkWebhookUrl } from "../../src/parts/sandbox/resources/webhook-endpoints/webhook-endpoint.ts";

const day = (date: Date) => date.toISOString().slice(0, 10);

describe("billing dates", () => {
  test("anchor day 31 bills on the last day of shorter months, and on the 31st again after them", () => {
    const cycle = { interval: "month", interval_count: 1, anchor_day: 31 } as const;
    const start = new Date("2027-01-31T10:20:30.400Z");
    const dates = Array.from({ length: 6 }, (_, n) => day(billingDate(start, cycle, n)));
    expect(dates).toEqual(["2027-01-31", "2027-02-28", "2027-03-31", "2027-04-30", "2027-05-31", "2027-06-30"]);
    expect(day(billingDate(new Date("2028-01-31T00:00:00Z"), cycle, 1))).toBe("2028-02-29");
    expect(billingDate(start, cycle, 1).toISOString()).toBe("2027-02-28T10:20:30.400Z");
  });

  test("every cadence and anchor day gives the right next dates over 24 cycles", () => {
    const cadence = fc.constantFrom(["day", 1], ["day", 7], ["day", 14], ["month", 1], ["month", 3], ["month", 12]);
    const start = fc.date({
      min: new Date("2024-01-01T00:00:00Z"),
      max: new Date("2032-12-31T00:00:00Z"),
      noInvalidDate: true,
    });
    const anchor = fc.option(fc.integer({ min: 1, max: 31 }));
    fc.assert(
      fc.property(start, cadence, anchor, (from, [interval, count], anchor_day) => {
        const cycle = {
          interval,
          interval_count: count,
          anchor_day: interval === "day" ? null : anchor_day,
        };
        for (let n = 1; n <= 24; n++) {
          const date = billingDate(from, cycle, n);
          if (interval === "day") {
            expect(date.getTime() - from.getTime()).toBe(n * cycle.interval_count * 86_400_000);
            continue;
          }
          const months = (date.getUTCFullYear() - from.getUTCFullYear()) * 12 + date.getUTCMonth() - from.getUTCMonth();
          expect(months).toBe(n * cycle.interval_count);
          const wanted = cycle.anchor_day ?? from.getUTCDate();
          const tomorrow = new Date(date.getTime() + 86_400_000);
          const isLastDay = tomorrow.getUTCDate() === 1;
          expect(date.getUTCDate() === wanted || (isLastDay && date.getUTCDate() < wanted)).toBe(true);
          expect(date.toISOString().slice(10)).toBe(from.toISOString().slice(10));
        }
      }),
    );
  });

  test("finds the first date still to come", () => {
    const cycle = { interval: "day", interval_count: 7, anchor_day: null } as const;
    const start = new Date("2026-03-01T00:00:00Z");
    const next = nextBillingDateAfter(start, cycle, new Date("2026-03-15T00:00:00Z"));
    expect([day(next.date), next.n]).toEqual(["2026-03-22", 3]);
  });
});

test("order numbers are 8 alphanumerics and do not repeat", () => {
  const keys = [11, 22, 33, 44];
  const numbers = Array.from({ length: 200_000 }, (_, n) => orderNumber(n, keys));
  expect(new Set(numbers).size).toBe(numbers.length);
  expect(numbers.every((text) => /^[0-9A-Z]{8}$/.test(text))).toBe(true);
});

test("there is a card for every failure code of the table, and for no other", () => {
  const codes = new Set(
    Object.values(testCards).flatMap((card) =>
      card.charges.flatMap((outcome): string[] => (outcome === null ? [] : [outcome.code])),
    ),
  );
  expect([...codes].sort()).toEqual([...failureCodes].sort());
});

test("patterns: all, a family at any depth, an exact name", () => {
  expect(coversEvent(["*"], "order.created")).toBe(true);
  expect(coversEvent(["order.*"], "order.created")).toBe(true);
  expect(coversEvent(["order.*"], "subscription.created")).toBe(false);
  expect(coversEvent(["subscription.*"], "subscription.billing.updated")).toBe(true);
  expect(coversEvent(["customer.created"], "customer.created")).toBe(true);
  expect(coversEvent(["customer.created"], "customer.updated")).toBe(false);
});

test("retries are counted from the first decline", () => {
  const first = new Date("2026-01-01T00:00:00Z");
  const days = [1, 2, 3, 4, 5].map((attempts) => nextRetryAt(first, attempts, [1, 3, 5, 7]));
  expect(days.map((date) => date && day(date))).toEqual(["2026-01-02", "2026-01-04", "2026-01-06", "2026-01-08", null]);
});

test("updated_at moves with every change, ties only when it may, and never falls", () => {
  const now = "2026-01-01T00:00:00.500Z";
  expect(nextUpdatedAt(now, "2026-01-01T00:00:00.499Z", false)).toBe(now);
  expect(nextUpdatedAt(now, now, false)).toBe("2026-01-01T00:00:00.501Z");
  expect(nextUpdatedAt(now, now, true)).toBe(now);
  expect(nextUpdatedAt(now, "2026-01-01T00:00:00.999Z", false)).toBe("2026-01-01T00:00:01.000Z");
  expect(nextUpdatedAt(now, "2026-01-01T00:00:00.999Z", true)).toBe("2026-01-01T00:00:00.999Z");
});

test("webhook URLs are https, and http where the switch says so", () => {
  expect(checkWebhookUrl("https://example.test/x", false)).toBe("ok");
  expect(checkWebhookUrl("http://127.0.0.1:3000/x", "loopback")).toBe("ok");
  expect(checkWebhookUrl("http://localhost/x", "loopback")).toBe("ok");
  expect(checkWebhookUrl("http://[::1]:1/x", "loopback")).toBe("ok");
  expect(checkWebhookUrl("http://127.0.0.1.example.test/", "loopback")).toBe("insecure");
  expect(checkWebhookUrl("http://192.168.0.1/", "loopback")).toBe("insecure");
  expect(checkWebhookUrl("http://127.0.0.1/", false)).toBe("insecure");
  expect(checkWebhookUrl("http://example.test/", true)).toBe("ok");
  expect(checkWebhookUrl("ftp://example.test/", true)).toBe("malformed");
  expect(checkWebhookUrl("nonsense", true)).toBe("malformed");
});
