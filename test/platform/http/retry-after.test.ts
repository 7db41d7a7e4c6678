import { describe, expect, it } from "vitest";
import { parseHttpDate, parseRetryAfter } from "../../../src/platform/http/exchange.ts";

const answeredAt = new Date("1994-11-06T08:49:07Z");

describe("parseRetryAfter", () => {
  it.each([
    ["0", 0],
    ["7", 7_000],
    [" 120 ", 120_000],
    ["Sun, 06 Nov 1994 08:49:37 GMT", 30_000],
    ["Sunday, 06-Nov-94 08:49:37 GMT", 30_000],
    ["Sun Nov  6 08:49:37 1994", 30_000],
    ["Sun, 06 Nov 1994 08:00:00 GMT", 0],
    ["99999999999", 3_600_000],
    ["Sun, 06 Nov 2094 08:49:37 GMT", 3_600_000],
  ])("reads %s", (header, expected) => {
    expect(parseRetryAfter(header, answeredAt)).toBe(expected);
  });

  it.each(["", "soon", "-5", "1.5", "1e3", "10 s", "1994-11-06T08:49:37Z", "Sun, x"])(
    "finds nothing in %j",
    (header) => {
      expect(parseRetryAfter(header, answeredAt)).toBeNull();
    },
  );

  it("finds nothing in no header", () => {
    expect(parseRetryAfter(null, answeredAt)).toBeNull();
  });

  it("measures a date against the answer's own date, so that a moved clock does not matter", () => {
    const moved = new Date("2031-05-01T00:00:00Z");
    expect(parseRetryAfter("Thu, 01 May 2031 00:00:09 GMT", moved)).toBe(9_000);
  });
});

it("reads the Date header that a server of Node writes", () => {
  const instant = new Date("2026-02-28T23:59:59Z");
  expect(parseHttpDate(instant.toUTCString())).toEqual(instant);
});
