import { expect, test } from "vitest";
import { RetryLater as OwnRetryLater } from "../../src/parts/delivery/dispatch/define-handler.ts";
import { mostPostponements, postponementOf } from "../../src/parts/delivery/dispatch/postpone.ts";

const { RetryLater: PackedRetryLater } = (await import(new URL("../../src/bin/handlers.js", import.meta.url).href)) as {
  RetryLater: typeof OwnRetryLater;
};

const now = new Date("2026-03-01T12:00:00Z");
const answer = (headers: Record<string, string>) => ({ headers: new Headers(headers) });

const waits: [string, ConstructorParameters<typeof OwnRetryLater>[0], number | null][] = [
  ["none", 0, 1_000],
  ["a negative time", -5_000, 1_000],
  ["a minute", 60_000, 60_000],
  ["a year", 365 * 86_400_000, 86_400_000],
  ["what is no number", Number.NaN, null],
  ["infinity", Infinity, null],
  ["an answer in seconds", answer({ "retry-after": "90" }), 90_000],
  ["an answer without Retry-After", answer({}), 60_000],
  ["an answer with an unreadable one", answer({ "retry-after": "soon" }), 60_000],
  ["an answer with an endless one", answer({ "retry-after": "9".repeat(400) }), 3_600_000],
  [
    "an answer with a date, by its own clock",
    answer({
      "retry-after": "Mon, 01 Mar 2027 00:02:00 GMT",
      date: "Mon, 01 Mar 2027 00:00:00 GMT",
    }),
    120_000,
  ],
  ["an answer with a date", answer({ "retry-after": "Sun, 01 Mar 2026 12:05:00 GMT" }), 300_000],
  ["an answer with a past date", answer({ "retry-after": "Sun, 01 Mar 2020 12:05:00 GMT" }), 1_000],
];

test.each([
  ["the sources", OwnRetryLater],
  ["the package", PackedRetryLater],
])("RetryLater of %s waits as it is asked to, within bounds", (_, RetryLater) => {
  for (const [asked, given, delayMs] of waits) {
    const wait = postponementOf(new RetryLater(given), 0, now);
    expect(wait?.delayMs ?? null, asked).toBe(delayMs);
  }
});

test("each time that a change is put off the shortest wait grows, up to a minute", () => {
  const waitAfter = (times: number) => postponementOf(new OwnRetryLater(0), times, now)?.delayMs;
  expect([0, 1, 9, 59, 60, 999].map(waitAfter)).toEqual([1_000, 2_000, 10_000, 60_000, 60_000, 60_000]);
});

test("a change that was put off a thousand times loses an attempt with each further one", () => {
  const after = (times: number) => postponementOf(new OwnRetryLater(5_000), times, now)?.isAttempt;
  expect([0, mostPostponements - 1, mostPostponements].map(after)).toEqual([false, false, true]);
});

test("what else is thrown asks for no time", () => {
  expect(postponementOf(new Error("any other"), 0, now)).toBeNull();
  expect(postponementOf("thrown text", 0, now)).toBeNull();
});
