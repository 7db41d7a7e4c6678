import { describe, expect, test } from "vitest";
import { lastTimeOfDay, quietUntil } from "../../../src/parts/alerts/outbox/announce.ts";

const zone = "Europe/Berlin";
const everyDay = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;

describe("quiet hours", () => {
  const quiet = { from: "22:00", to: "07:00", days: ["fri", "sat"] as const, except: [] };
  test.each([
    ["2026-03-06T22:30:00+01:00", "2026-03-07T07:00:00+01:00"],
    ["2026-03-07T06:59:30+01:00", "2026-03-07T07:00:00+01:00"],
    ["2026-03-07T07:00:00+01:00", null],
    ["2026-03-08T23:00:00+01:00", null],
    // The clocks go forward on the 29th.
    ["2026-03-28T23:00:00+01:00", "2026-03-29T07:00:00+02:00"],
    // … and back on 25 October.
    ["2026-10-24T23:00:00+02:00", "2026-10-25T07:00:00+01:00"],
    ["2026-02-27T23:00:00+01:00", "2026-02-28T07:00:00+01:00"],
    ["2026-01-31T23:00:00+01:00", "2026-02-01T07:00:00+01:00"],
  ])("%s wait until %s", (now, until) => {
    const found = quietUntil({ ...quiet, days: [...quiet.days] }, zone, new Date(now));
    expect(found).toEqual(until === null ? null : new Date(until));
  });

  test.each([
    [
      "that end in a skipped hour end where it would have been",
      "2026-03-29T01:00:00+01:00",
      "2026-03-29T03:30:00+02:00",
    ],
    ["that end in a repeated hour end at its first time", "2026-10-25T01:00:00+02:00", "2026-10-25T02:30:00+02:00"],
    ["… and at its second for what comes after the first", "2026-10-25T02:10:00+01:00", "2026-10-25T02:30:00+01:00"],
  ])("%s", (_name, now, until) => {
    const found = quietUntil({ from: "22:00", to: "02:30", days: [...everyDay], except: [] }, zone, new Date(now));
    expect(found).toEqual(new Date(until));
  });
});

describe("the last time that it was 8:00", () => {
  test.each([
    ["at 8:00", "2026-03-06T08:00:00+01:00", "2026-03-06T08:00:00+01:00"],
    ["before 8:00", "2026-03-06T07:59:59+01:00", "2026-03-05T08:00:00+01:00"],
    ["on the day before the clocks go forward", "2026-03-28T08:30:00+01:00", "2026-03-28T08:00:00+01:00"],
    ["on the day before the clocks go back", "2026-10-24T08:30:00+02:00", "2026-10-24T08:00:00+02:00"],
    ["on the morning after it", "2026-10-25T07:30:00+01:00", "2026-10-24T08:00:00+02:00"],
    ["on the first of a month", "2026-03-01T07:00:00+01:00", "2026-02-28T08:00:00+01:00"],
  ])("%s", (_name, now, last) => {
    expect(lastTimeOfDay("08:00", zone, new Date(now))).toEqual(new Date(last));
  });

  test("a repeated hour does not make two of them", () => {
    const last = lastTimeOfDay("02:30", zone, new Date("2026-10-25T03:00:00+01:00"));
    expect(last).toEqual(new Date("2026-10-25T02:30:00+02:00"));
  });
});
