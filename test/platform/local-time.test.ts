import fc from "fast-check";
import { expect, test } from "vitest";
import { beginningOfDay, dayIn, localTimeIn, instantsOf } from "../../src/platform/local-time.ts";

const minuteOf = (text: string) => {
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0] = text.split(/[-T:]/).map(Number);
  return { year, month, day, hour, minute };
};

const moments = (text: string, timeZone: string): string[] =>
  instantsOf(minuteOf(text), timeZone).map((at) => at.toISOString().slice(0, 16));

test("reads every hand of the wall clock, Sunday as 0 and midnight as 0 hours", () => {
  const read = localTimeIn("America/New_York");
  const saturday = { year: 2026, month: 2, day: 28, hour: 23, minute: 59, second: 58, weekday: 6 };
  expect(read(new Date("2026-03-01T04:59:58.999Z"))).toEqual(saturday);
  const midnight = { year: 2026, month: 3, day: 1, hour: 0, minute: 0, second: 0, weekday: 0 };
  expect(read(new Date("2026-03-01T05:00:00Z"))).toEqual(midnight);
});

test.each([
  ["Pacific/Auckland", "2025-09-30T11:00:00Z", "2025-10-01"],
  ["America/Los_Angeles", "2025-10-01T06:59:59Z", "2025-09-30"],
  ["Asia/Kathmandu", "2025-12-31T18:15:00Z", "2026-01-01"],
  ["UTC", "0999-12-31T23:59:59Z", "0999-12-31"],
])("in %s the day of %s is %s", (timeZone, at, day) => {
  expect(dayIn(timeZone, new Date(at))).toBe(day);
});

test.each([
  ["an ordinary minute", "Europe/Berlin", "2026-03-04T15:30", ["2026-03-04T14:30"]],
  ["an offset of a quarter of an hour", "Asia/Kathmandu", "2026-01-01T00:00", ["2025-12-31T18:15"]],
  ["the last minute before a gap", "Europe/Berlin", "2026-03-29T01:59", ["2026-03-29T00:59"]],
  ["in a gap", "Europe/Berlin", "2026-03-29T02:30", ["2026-03-29T01:30"]],
  ["the first minute after a gap", "Europe/Berlin", "2026-03-29T03:00", ["2026-03-29T01:00"]],
  ["a gap at midnight", "Africa/Cairo", "2026-04-24T00:00", ["2026-04-23T22:00"]],
  ["a gap of half an hour", "Australia/Lord_Howe", "2025-10-05T02:15", ["2025-10-04T15:45"]],
  ["a day that was left out", "Pacific/Apia", "2011-12-30T12:00", ["2011-12-30T22:00"]],
  ["in a fold", "Europe/Berlin", "2026-10-25T02:30", ["2026-10-25T00:30", "2026-10-25T01:30"]],
  [
    "a fold that repeats the end of a day",
    "America/Havana",
    "2026-11-01T00:59",
    ["2026-11-01T04:59", "2026-11-01T05:59"],
  ],
  ["after a fold", "Europe/Berlin", "2026-10-25T03:00", ["2026-10-25T02:00"]],
  ["long ago", "America/New_York", "1970-01-01T00:00", ["1970-01-01T05:00"]],
  ["far away", "Pacific/Kiritimati", "2100-12-31T23:59", ["2100-12-31T09:59"]],
])("%s: in %s it is %s at %j", (_name, timeZone, local, expected) => {
  expect(moments(local, timeZone)).toEqual(expected);
});

test("counts on past the end of a month", () => {
  expect(moments("2026-12-32T00:00", "UTC")).toEqual(["2027-01-01T00:00"]);
});

test("finds every moment again by what the wall clock shows then", () => {
  const zones = ["UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia", "Antarctica/Troll"];
  const minutes = fc.integer({
    min: Date.UTC(1970, 0, 2) / 60_000,
    max: Date.UTC(2100, 11, 31) / 60_000,
  });
  fc.assert(
    fc.property(fc.constantFrom(...zones), minutes, (timeZone, minute) => {
      const at = new Date(minute * 60_000);
      const found = instantsOf(localTimeIn(timeZone)(at), timeZone).map((each) => each.getTime());
      expect(found).toContain(at.getTime());
    }),
  );
});

test.each([
  ["an ordinary day", "Europe/Berlin", "2026-03-04", "2026-03-03T23:00"],
  ["a day without midnight", "America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00"],
  ["a day without midnight, east of Greenwich", "Africa/Cairo", "2026-04-24", "2026-04-23T22:00"],
  ["another", "Asia/Beirut", "2026-03-29", "2026-03-28T22:00"],
  ["a day whose midnight is skipped in the midst of an hour", "America/Toronto", "1919-03-31", "1919-03-31T04:30"],
  ["a day with two midnights", "America/Havana", "2026-11-01", "2026-11-01T04:00"],
  ["a day whose end is repeated", "America/Sao_Paulo", "2018-02-18", "2018-02-18T03:00"],
  ["a day whose first hour falls back into the day before", "Asia/Beirut", "2026-10-25", "2026-10-24T22:00"],
  ["a day that was left out is the next one", "Pacific/Apia", "2011-12-30", "2011-12-30T10:00"],
])("%s: in %s %s begins at %s", (_name, timeZone, day, expected) => {
  const [year = 0, month = 0, date = 0] = day.split("-").map(Number);
  const at = beginningOfDay({ year, month, day: date }, timeZone);
  expect(at.toISOString().slice(0, 16)).toBe(expected);
});

test("a day begins at the first moment that the clock shows it, in every zone", () => {
  const days = fc.integer({
    min: Date.UTC(1950, 0, 1) / 86_400_000,
    max: Date.UTC(2037, 0) / 86_400_000,
  });
  const skipping = ["America/Sao_Paulo", "Africa/Cairo", "Asia/Beirut", "America/Havana", "Asia/Gaza"];
  const zones = fc.oneof(fc.constantFrom(...skipping), fc.constantFrom(...Intl.supportedValuesOf("timeZone")));
  fc.assert(
    fc.property(zones, days, (timeZone, number) => {
      const wanted = new Date(number * 86_400_000).toISOString().slice(0, 10);
      const [year = 0, month = 0, day = 0] = wanted.split("-").map(Number);
      const at = beginningOfDay({ year, month, day }, timeZone);
      const read = (ms: number) => dayIn(timeZone, new Date(at.getTime() + ms));
      // A day that a zone left out has no moment: it ends where the next one begins.
      expect(read(0) >= wanted).toBe(true);
      expect(read(-1) < wanted).toBe(true);
    }),
    { numRuns: 300 },
  );
});
