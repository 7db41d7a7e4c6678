import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type VersionParts,
  confirmableFrom,
  partsOfVersion,
  statusRank,
  versionOf,
} from "../../src/core/mirror/version.ts";
import { canonicalTimestamp } from "../../src/core/contract/timestamp.ts";

const time = fc
  .date({
    min: new Date("0001-01-01T00:00:00Z"),
    max: new Date("9999-12-31T23:59:59Z"),
    noInvalidDate: true,
  })
  .map((date) => canonicalTimestamp(date.toISOString()) ?? "");
const hash = fc.stringMatching(/^[0-9a-f]{32}$/);
const parts: fc.Arbitrary<VersionParts> = fc.record({
  updatedAt: time,
  observedAt: fc.option(time, { nil: null }),
  rank: fc.nat(9),
  hash,
});
const base: VersionParts = {
  updatedAt: "2025-03-01T12:00:00.000000Z",
  observedAt: null,
  rank: 3,
  hash: "5".repeat(32),
};
const higher = (a: Partial<VersionParts>, b: Partial<VersionParts>): boolean =>
  versionOf({ ...base, ...a }) > versionOf({ ...base, ...b });

describe("the version of a state", () => {
  test("orders all states totally: of two different ones exactly one is higher, and nothing goes in a circle", () => {
    fc.assert(
      fc.property(parts, parts, parts, (a, b, c) => {
        const [x, y, z] = [versionOf(a), versionOf(b), versionOf(c)];
        expect(x > y).toBe(x !== y && !(y > x));
        if (x > y && y > z) expect(x > z).toBe(true);
        expect(x > "").toBe(true);
      }),
    );
  });

  test("is taken apart into what it was made of, also that of an order's entry", () => {
    fc.assert(
      fc.property(parts, fc.option(time, { nil: undefined }), (of, within) => {
        const whole = within === undefined ? of : { ...of, within };
        expect(partsOfVersion(versionOf(whole))).toEqual(whole);
      }),
    );
  });

  test("follows the object's own time first, to the microsecond", () => {
    const [earlier, later] = ["2025-03-01T12:00:00.000001Z", "2025-03-01T12:00:00.000002Z"];
    const muchLater = "2026-01-01T00:00:00.000000Z";
    expect(higher({ updatedAt: later }, { updatedAt: earlier, observedAt: muchLater, rank: 9 })).toBe(true);
  });

  test("puts what a read saw above events of the same time, and a later read above an earlier one", () => {
    const [first, second] = ["2025-03-01T12:00:02.000000Z", "2025-03-01T12:00:03.000000Z"];
    expect(higher({ observedAt: first, rank: 0 }, { rank: 9 })).toBe(true);
    expect(higher({ observedAt: second, rank: 0 }, { observedAt: first, rank: 9 })).toBe(true);
  });

  test("puts the status that comes later in a life above, then the content", () => {
    expect(statusRank("chargeback")).toBeGreaterThan(statusRank("succeeded"));
    expect(statusRank("succeeded")).toBeGreaterThan(statusRank("pending"));
    expect(higher({ rank: 4 }, { rank: 3, hash: "f".repeat(32) })).toBe(true);
    expect(higher({ hash: "6".repeat(32) }, {})).toBe(true);
  });

  test.each(["constructor", "__proto__", "toString", "on_hold", 7, null, undefined, {}])(
    "knows a place for any status: %s",
    (status) => {
      expect(statusRank(status)).toBe(4);
    },
  );
});

test("an answer settles what happened two seconds before its date, also at the ends of time", () => {
  expect(confirmableFrom("2025-12-31T23:59:58.500000Z")).toBe("2026-01-01T00:00:00.500000Z");
  expect(confirmableFrom("9999-12-31T23:59:59.000000Z")).toBe("9999-12-31T23:59:59.000000Z");
  expect(confirmableFrom("0001-01-01T00:00:00.000000Z")).toBe("0001-01-01T00:00:02.000000Z");
});
