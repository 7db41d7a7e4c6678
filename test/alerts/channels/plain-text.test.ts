import { expect, test } from "vitest";
import { oneLine } from "../../../src/platform/readable-text.ts";
import { orderName } from "../../../src/parts/alerts/rules/wording.ts";

test.each([
  ["A\u200B\u200C\u200D\u2060\uFEFFB\u00ADC", "ABC"],
  ["A\u{E0041}\u{E0042}B", "AB"],
  ["\u202Egnp.exe\u2066x\u2069", "gnp.exex"],
  ["👩‍👩‍👧‍👦 🇩🇪 👩🏽‍🚒 ❤️‍🔥", "👩‍👩‍👧‍👦 🇩🇪 👩🏽‍🚒 ❤️‍🔥"],
  ["Z\u0301\u0302\u0303\u0304\u0305\u0306!", "Z\u0301\u0302\u0303\u0304!"],
  ["Việt Nam, ước", "Việt Nam, ước"],
  ["@\u200Beveryone @\u200Dhere", "@\u2060everyone @\u2060here"],
])("%j is shown as %j", (given, shown) => {
  expect(oneLine(given, 100)).toBe(shown);
});

test("a long text of what nobody sees takes no time", () => {
  const given = `${"\u200D".repeat(200_000)}${"\u0301".repeat(200_000)}`;
  const startedAt = process.cpuUsage().user;
  expect(oneLine(given, 100)).toHaveLength(4);
  expect((process.cpuUsage().user - startedAt) / 1_000).toBeLessThan(1_000);
});

test("an order whose number nobody sees has no name", () => {
  expect(orderName("\u200B\u200B")).toBeNull();
  expect(orderName("   ")).toBeNull();
  expect(orderName("NR7")).toBe("order NR7");
});
