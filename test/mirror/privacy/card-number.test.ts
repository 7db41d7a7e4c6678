import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { maskCardNumbers, mayHoldCardNumber } from "../../../src/core/mirror/privacy/card-number.ts";
import { anyText } from "../../support/any-text.ts";

/** The last digit that makes a number pass Luhn's test. */
function withCheckDigit(digits: string): string {
  const sum = Array.from(digits)
    .reverse()
    .map(Number)
    .map((digit, n) => (n % 2 === 0 ? [0, 2, 4, 6, 8, 1, 3, 5, 7, 9][digit]! : digit))
    .reduce((all, digit) => all + digit, 0);
  return digits + ((10 - (sum % 10)) % 10);
}

const passes = (digits: string): boolean => withCheckDigit(digits.slice(0, -1)) === digits;

describe("a card number is masked", () => {
  test.each([
    ["Visa", "4242424242424242"],
    ["Visa, 19 digits", withCheckDigit("400012345678901234")],
    ["Mastercard", "5431111111111111"],
    ["Mastercard, 2-series, the first", withCheckDigit("222100000000000")],
    ["Mastercard, 2-series, the last", withCheckDigit("272099999999999")],
    ["American Express", "341111111111111"],
    ["Discover", "6011601160116611"],
    ["Discover, 65", withCheckDigit("650000000000000")],
    ["JCB", "3530111333300000"],
    ["Diners Club", "30569309025904"],
    ["Diners Club, 36", withCheckDigit("3600000000000")],
    ["UnionPay", "6200000000000005"],
    ["UnionPay, 19 digits", "6205500000000000004"],
    ["Maestro", "6759649826438453"],
    ["Maestro, 50", withCheckDigit("501800000000000")],
  ])("%s", (_, number) => {
    expect(passes(number)).toBe(true);
    expect(maskCardNumbers(`pay with ${number}, please`)).toBe(
      `pay with [card number ending ${number.slice(-4)}], please`,
    );
  });

  test.each([
    ["alone", "4242424242424242", "[card number ending 4242]"],
    ["in groups", "4242 4242 4242 4242", "[card number ending 4242]"],
    ["with hyphens", "card 4242-4242-4242-4242.", "card [card number ending 4242]."],
    ["as on an American Express", "3411 111111 11111", "[card number ending 1111]"],
    ["in six and the rest", "620550 0000000000004", "[card number ending 0004]"],
    ["with its date and code", "4242 4242 4242 4242 12/29 123", "[card number ending 4242] 12/29 123"],
    ["after a count", "2 4242 4242 4242 4242", "2 [card number ending 4242]"],
    ["after a hyphen", "ref-4242424242424242", "ref-[card number ending 4242]"],
    ["in a list", "1,4242424242424242;2", "1,[card number ending 4242];2"],
    [
      "beside another that alone lets it stand alone",
      "4000-0000-0000-0002-4242424242424242",
      "[card number ending 0002]-[card number ending 4242]",
    ],
  ])("%s", (_, text, masked) => {
    expect(maskCardNumbers(text)).toBe(masked);
  });
});

describe("what only looks like one is not", () => {
  test.each([
    ["another check digit", "4242424242424243"],
    ["a tracking number that passes and begins like no issuer", withCheckDigit("940011020088123")],
    ["a time in milliseconds", "1740830400009"],
    ["an order's number", "AB12CD34"],
    ["a phone number", "+4915123456783"],
    ["a phone number without its plus, as Visa once had them", withCheckDigit("491512345678")],
    ["a phone number in groups", "+49 1512 3456 789 and 415-555-0123 415-555-0124"],
    ["a time", "2025-03-01T12:00:00.000Z 2025-03-01 2025-03-02"],
    ["a UUID of digits", "40000000-0000-4000-8000-000000000002"],
    ["a UUID whose middle would pass", "12345678-4242-4242-8242-424242424242"],
    ["a part of a longer number", "42424242424242420000"],
    ["a part of a word", "x4242424242424242"],
    ["hex", "4242424242424242ab"],
    ["a part of a name", "order_4242424242424242"],
    ["a fraction", "0.4242424242424242"],
    ["an amount with a fraction", "4242424242424242.00"],
    ["two spaces", "4242  4242  4242  4242"],
    ["numbers one after the other", "40 41 42 43 44 45 46 47"],
    ["full-width digits", "４２４２４２４２４２４２４２４２"],
  ])("%s", (_, text) => {
    expect(maskCardNumbers(text)).toBe(text);
  });
});

describe("of any text", () => {
  const text = fc.string({
    unit: fc.constantFrom(...Array.from("0123456789"), "4", "4242", "4242424242424242", " ", "-", "5", "x", "+"),
    maxLength: 60,
  });

  test("what is masked holds no card number any more", () => {
    fc.assert(
      fc.property(text, (given) => {
        const masked = maskCardNumbers(given);
        expect(maskCardNumbers(masked)).toBe(masked);
        const left = masked.match(/(?<![\w+-]|\d\.)\d{13,19}(?![\w-]|\.\d)/g) ?? [];
        expect(left.filter((digits) => /^4(\d{15}|\d{18})$/.test(digits) && passes(digits))).toEqual([]);
      }),
      { numRuns: 2_000 },
    );
  });

  test("a card number is found wherever it stands alone, and nothing else is touched", () => {
    const words = fc.string({ unit: fc.constantFrom(...Array.from("abc,;:()")), maxLength: 20 });
    const body = fc.stringMatching(/^4[0-9]{14}$/);
    fc.assert(
      fc.property(words, body, words, (before, digits, after) => {
        const card = withCheckDigit(digits);
        expect(maskCardNumbers(`${before} ${card} ${after}`)).toBe(
          `${before} [card number ending ${card.slice(-4)}] ${after}`,
        );
        expect(maskCardNumbers(`${before} ${after}`)).toBe(`${before} ${after}`);
      }),
    );
  });

  test.each([
    ["digits alone", "4"],
    ["groups of four", "4242 "],
    ["groups of four with hyphens", "4242-"],
    ["groups of every length", "1234 5678 9012 3456 789 "],
    ["single digits", "4 "],
    ["card numbers", "4242424242424242 "],
    ["card numbers that a hyphen joins", "4242-4242-4242-4242-"],
  ])("a mebibyte of %s costs no second of CPU", (_, unit) => {
    const long = `${unit.repeat(2 ** 20 / unit.length)}4242424242424242`;
    const before = process.cpuUsage();
    maskCardNumbers(long);
    expect(process.cpuUsage(before).user / 1e6).toBeLessThan(1);
  });
});

describe("the first test of a text", () => {
  const plainly = (text: string): boolean => /[0-9 -]{13}/.test(text);

  test("says what its definition says, of any text", () => {
    const piece = fc.oneof(
      fc.stringMatching(/^[0-9 -]{1,14}$/),
      fc.constantFrom("/", ":", ".", "a", "Z", "\u0660", "\u00a0", "\u{1f375}"),
      anyText({ maxLength: 3 }),
      fc.uuid(),
    );
    const text = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(""));
    fc.assert(
      fc.property(text, (any) => {
        expect(mayHoldCardNumber(any)).toBe(plainly(any));
      }),
      { numRuns: 1_000 },
    );
  });

  test("finds a run of exactly 13 at every place, and none of 12", () => {
    const places = Array.from({ length: 40 }, (_, before) => before);
    const around = (run: string, before: number) => `${"x".repeat(before)}${run}x`;
    expect(places.filter((n) => !mayHoldCardNumber(around("4000 0000-000", n)))).toEqual([]);
    expect(places.filter((n) => mayHoldCardNumber(around("4000 0000-00", n)))).toEqual([]);
  });
});
