import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { amountWithoutCode, currencyDigits, minorDigits, moneyText } from "../../src/platform/money.ts";
import { amountText } from "../../src/parts/reports/base/currencies.ts";
import { readable } from "../../src/parts/reports/render/rendering.ts";
import type { Column } from "../../src/parts/reports/base/report.ts";

const columns: Column[] = [
  { name: "currency", kind: "text" },
  { name: "amount", kind: "money" },
];
const inReport = (minor: bigint, currency: string): string =>
  readable(columns, [currency, minor.toString()], currencyDigits)[1] ?? "";

const anyMinor = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.bigInt({ min: -1_000n, max: 1_000n }),
  fc.constantFrom(0n, 2n ** 53n, -(2n ** 53n) - 1n),
);

describe("decimals of ISO 4217", () => {
  test.each([
    ["huf", 2],
    ["cop", 2],
    ["idr", 2],
    ["pkr", 2],
    ["all", 2],
    ["mga", 2],
    ["lak", 2],
    ["mmk", 2],
    ["iqd", 3],
    ["isk", 0],
    ["jpy", 0],
    ["clf", 4],
    ["uyw", 4],
    ["byr", 0],
  ])("%s has %i", (code, digits) => {
    expect([minorDigits(code), minorDigits(code.toUpperCase())]).toEqual([digits, digits]);
  });

  test.each(["xau", "xdr", "xts", "xxx", "zzz", "", "us", "constructor"])("nothing is guessed of %j", (code) => {
    expect(minorDigits(code)).toBeNull();
  });
});

test.each([...currencyDigits])(
  "an alert, a page and a report show every amount of %s with its %i decimals",
  (currency, digits) => {
    fc.assert(
      fc.property(anyMinor, (minor) => {
        const number = inReport(minor, currency);
        const [whole = "", decimals = ""] = number.split(".");
        expect(BigInt(whole + decimals)).toBe(minor);
        expect([decimals.length, whole.length > 0]).toEqual([digits, true]);
        expect(moneyText(minor, currency)).toBe(`${number} ${currency.toUpperCase()}`);
        expect(moneyText(minor.toString(), currency.toUpperCase())).toBe(moneyText(minor, currency));
        expect(amountText(minor, currency, currencyDigits).replaceAll(",", "")).toBe(moneyText(minor, currency));
      }),
      { numRuns: 50 },
    );
  },
);

test("an amount whose decimals are not known stays in minor units everywhere, and says so", () => {
  fc.assert(
    fc.property(anyMinor, fc.constantFrom("zzz", "xau", "us", "a1234"), (minor, currency) => {
      expect(inReport(minor, currency)).toBe(`${minor} minor units`);
      expect(amountWithoutCode(minor.toString(), null)).toBe(`${minor} minor units`);
      expect(moneyText(minor, currency)).toBe(`${minor} minor units of ${currency.toUpperCase()}`);
    }),
  );
  expect(amountText(-1_234_567n, "zzz", currencyDigits)).toBe("-1,234,567 minor units of ZZZ");
});

test("what an amount lacks is said, whatever there is instead", () => {
  fc.assert(
    fc.property(
      fc.option(fc.oneof(fc.bigInt(), fc.double(), fc.string())),
      fc.option(fc.string()),
      (minor, currency) => {
        expect(moneyText(minor, currency)).not.toMatch(/null|undefined|NaN/);
      },
    ),
  );
  expect([moneyText(null, null), moneyText(null, "usd"), moneyText(1n, null)]).toEqual([
    "an unknown amount",
    "an unknown amount of USD",
    "1 minor units of an unknown currency",
  ]);
});
