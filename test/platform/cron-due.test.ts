import { expect, test } from "vitest";
import { lastDue, nextDue } from "../../src/platform/cron.ts";

const dayMs = 86_400_000;
const due = (expression: string, now: string, timeZone = "UTC"): string | null =>
  lastDue(expression, { timeZone, now: new Date(now), withinMs: 8 * dayMs })?.toISOString() ?? null;

test.each([
  ["30 3 * * *", "2025-03-05T12:00:00Z", "2025-03-05T03:30:00.000Z"],
  ["30 3 * * *", "2025-03-05T03:30:59Z", "2025-03-05T03:30:00.000Z"],
  ["30 3 * * *", "2025-03-05T03:29:59Z", "2025-03-04T03:30:00.000Z"],
  ["*/20 * * * *", "2025-03-05T12:47:00Z", "2025-03-05T12:40:00.000Z"],
  ["10/20 * * * *", "2025-03-05T12:47:00Z", "2025-03-05T12:30:00.000Z"],
  ["0 2 * * mon-fri", "2025-03-09T12:00:00Z", "2025-03-07T02:00:00.000Z"],
  ["0 2 * * 7", "2025-03-12T12:00:00Z", "2025-03-09T02:00:00.000Z"],
  ["0 2 1 * 3", "2025-03-04T12:00:00Z", "2025-03-01T02:00:00.000Z"],
  ["0 2 1,15 mar *", "2025-03-16T12:00:00Z", "2025-03-15T02:00:00.000Z"],
])("%s was last due before %s at %s", (expression, now, expected) => {
  expect(due(expression, now)).toBe(expected);
});

test("is null where nothing was due for so long", () => {
  expect(due("0 2 1 * *", "2025-03-20T12:00:00Z")).toBeNull();
});

test("follows the time zone, also over a change of its offset", () => {
  expect(due("30 3 * * *", "2025-03-29T12:00:00Z", "Europe/Berlin")).toBe("2025-03-29T02:30:00.000Z");
  expect(due("30 3 * * *", "2025-03-31T12:00:00Z", "Europe/Berlin")).toBe("2025-03-31T01:30:00.000Z");
});

test("what is due in an hour that daylight saving skips is due an hour later", () => {
  // On 30 March the clocks of Berlin go from 2:00 to 3:00, and in April those of Beirut from 0:00 to 1:00.
  expect(due("30 2 * * *", "2025-03-30T12:00:00Z", "Europe/Berlin")).toBe("2025-03-30T01:30:00.000Z");
  expect(due("30 2 * * *", "2025-03-30T01:29:00Z", "Europe/Berlin")).toBe("2025-03-29T01:30:00.000Z");
  expect(due("15 0 * * *", "2025-03-30T12:00:00Z", "Asia/Beirut")).toBe("2025-03-29T22:15:00.000Z");
});

test("what is due in an hour that is repeated was due when the clock first showed it", () => {
  // On 26 October the clocks of Berlin go from 3:00 back to 2:00.
  const first = "2025-10-26T00:30:00.000Z";
  expect(due("30 2 * * *", "2025-10-26T00:45:00Z", "Europe/Berlin")).toBe(first);
  expect(due("30 2 * * *", "2025-10-26T01:10:00Z", "Europe/Berlin")).toBe(first);
  expect(due("30 2 * * *", "2025-10-26T12:00:00Z", "Europe/Berlin")).toBe(first);
});

test.each([
  ["30 3 * * *", "2025-03-05T12:00:00Z", "UTC", "2025-03-06T03:30:00.000Z"],
  ["30 3 * * *", "2025-03-05T03:30:00Z", "UTC", "2025-03-06T03:30:00.000Z"],
  ["30 3 * * *", "2025-03-05T03:29:59Z", "UTC", "2025-03-05T03:30:00.000Z"],
  ["30 3 * * *", "2025-03-29T12:00:00Z", "Europe/Berlin", "2025-03-30T01:30:00.000Z"],
  // The clock skips from 2:00 to 3:00, and repeats the hour from 2:00 in autumn: due the first time.
  ["30 2 * * *", "2025-03-29T12:00:00Z", "Europe/Berlin", "2025-03-30T01:30:00.000Z"],
  ["30 2 * * *", "2025-10-25T12:00:00Z", "Europe/Berlin", "2025-10-26T00:30:00.000Z"],
  ["30 2 * * *", "2025-10-26T00:45:00Z", "Europe/Berlin", "2025-10-27T01:30:00.000Z"],
])("%s is next due after %s in %s at %s", (expression, now, timeZone, expected) => {
  expect(nextDue(expression, { timeZone, now: new Date(now) }).toISOString()).toBe(expected);
});
