import { expect, test } from "vitest";
import { isWireId, wireId } from "../../src/core/contract/wire-types.ts";

test("an id has no control character and no lone surrogate, and every other character", () => {
  const isRefused = /[\p{Cc}\p{Cs}]/u;
  const units = Array.from({ length: 0x1_0000 }, (_, unit) => String.fromCharCode(unit));
  expect(units.filter((text) => isWireId(text) === isRefused.test(text))).toEqual([]);
  expect(isWireId("\u{1f9fe}")).toBe(true);
});

test.each([
  ["nothing", "", false],
  ["255 characters outside the basic plane", "\u{1f9fe}".repeat(255), true],
  ["256 characters", "a".repeat(256), false],
  ["a number", 7, false],
])("an id of %s", (_, id, isOne) => {
  expect(isWireId(id)).toBe(isOne);
  expect(wireId.safeParse(id).success).toBe(isOne);
});
