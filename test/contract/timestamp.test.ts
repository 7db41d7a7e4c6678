import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalTimestamp } from "../../src/core/contract/timestamp.ts";
import { anyText } from "../support/any-text.ts";

describe("canonicalTimestamp", () => {
  it.each([
    ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000000Z"],
    ["2026-01-02T03:04:05.1Z", "2026-01-02T03:04:05.100000Z"],
    ["2026-01-02T03:04:05.123Z", "2026-01-02T03:04:05.123000Z"],
    ["2026-01-02T03:04:05.123456Z", "2026-01-02T03:04:05.123456Z"],
    ["2026-01-02T03:04:05.123456999Z", "2026-01-02T03:04:05.123456Z"],
    ["2026-01-02t03:04:05z", "2026-01-02T03:04:05.000000Z"],
    ["2026-01-02 03:04:05+00:00", "2026-01-02T03:04:05.000000Z"],
    ["2026-01-02T03:04:05-00:00", "2026-01-02T03:04:05.000000Z"],
    ["2026-01-01T01:30:00.000001+02:00", "2025-12-31T23:30:00.000001Z"],
    ["2026-01-01T01:30:00+0530", "2025-12-31T20:00:00.000000Z"],
    ["2025-12-31T23:30:00-03", "2026-01-01T02:30:00.000000Z"],
    ["2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000000Z"],
    ["2000-02-29T00:00:00Z", "2000-02-29T00:00:00.000000Z"],
    ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"],
    ["0050-06-01T00:00:00+01:00", "0050-05-31T23:00:00.000000Z"],
    ["9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999Z"],
  ])("writes %s as %s", (given, expected) => {
    expect(canonicalTimestamp(given)).toBe(expected);
  });

  it.each([
    "",
    "now",
    "2026-01-02",
    "2026-01-02T03:04:05",
    "2026-01-02T03:04Z",
    "2026-13-01T00:00:00Z",
    "2026-00-01T00:00:00Z",
    "2026-02-30T00:00:00Z",
    "2026-02-29T00:00:00Z",
    "1900-02-29T00:00:00Z",
    "2026-04-31T00:00:00Z",
    "2026-01-00T00:00:00Z",
    "2026-01-01T24:00:00Z",
    "2026-01-01T23:60:00Z",
    "2026-01-01T23:59:60Z",
    "2026-01-01T00:00:00.Z",
    "2026-01-01T00:00:00.1234567890Z",
    "2026-01-01T00:00:00+24:00",
    "2026-01-01T00:00:00+02:60",
    "2026-01-01T00:00:00Z ",
    " 2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00Z\n",
    "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00+01:00",
    "9999-12-31T23:59:59-01:00",
    "+002026-01-01T00:00:00Z",
    "٢٠٢٦-01-01T00:00:00Z",
  ])("refuses %j", (given) => {
    expect(canonicalTimestamp(given)).toBeNull();
  });

  it("agrees with Date on every instant that Date can hold", () => {
    const instants = fc.date({
      min: new Date("0001-01-02T00:00:00Z"),
      max: new Date("9999-12-30T00:00:00Z"),
      noInvalidDate: true,
    });
    fc.assert(
      fc.property(instants, fc.integer({ min: -1439, max: 1439 }), (instant, offset) => {
        const local = new Date(instant.getTime() + offset * 60_000).toISOString().slice(0, -1);
        const sign = offset < 0 ? "-" : "+";
        const hours = String(Math.floor(Math.abs(offset) / 60)).padStart(2, "0");
        const minutes = String(Math.abs(offset) % 60).padStart(2, "0");
        const expected = `${instant.toISOString().slice(0, -1)}000Z`;
        expect(canonicalTimestamp(`${local}${sign}${hours}:${minutes}`)).toBe(expected);
      }),
    );
  });

  it("is its own fixed point and orders as text the way instants order in time", () => {
    const microseconds = fc.tuple(fc.integer({ min: 0, max: 4_000_000_000 }), fc.integer({ min: 0, max: 999_999 }));
    const write = ([seconds, micros]: [number, number]): string =>
      `${new Date(seconds * 1000).toISOString().slice(0, 19)}.${String(micros).padStart(6, "0")}Z`;
    fc.assert(
      fc.property(microseconds, microseconds, (a, b) => {
        const first = canonicalTimestamp(write(a)) ?? "";
        const second = canonicalTimestamp(write(b)) ?? "";
        expect(canonicalTimestamp(first)).toBe(first);
        expect(Math.sign(a[0] - b[0] || a[1] - b[1])).toBe(first < second ? -1 : first > second ? 1 : 0);
      }),
    );
  });

  it("never throws", () => {
    fc.assert(
      fc.property(anyText(), (text) => {
        const canonical = canonicalTimestamp(text);
        expect(canonical === null || canonical.length === 27).toBe(true);
      }),
    );
  });
});
