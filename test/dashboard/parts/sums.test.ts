import { expect, test } from "vitest";
import { sums } from "../../../src/app/dashboard/elements/values.ts";

const textOf = (amounts: Parameters<typeof sums>[0]): string =>
  sums(amounts)
    .markup.replace(/<[^>]+>/g, " ")
    .replace(/\s+/g, " ")
    .trim();

test("a sum says how many amounts are not in it, since they are not known", () => {
  const known = { totalMinor: 1_000n, currency: "usd" };
  const unknown = { totalMinor: null, currency: "usd" };
  expect(textOf([known, known])).toBe("20.00 USD");
  expect(textOf([known, unknown])).toBe("10.00 USD 1 unknown amount");
  expect(textOf([unknown, { ...unknown, currency: null }])).toBe("2 unknown amounts");
  expect(textOf([])).toBe("–");
});
