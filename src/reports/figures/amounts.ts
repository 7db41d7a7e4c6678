import { minorDigits, moneyText } from "../../platform/money.ts";
import type { Exponents } from "../currencies.ts";

/** The number that a text begins with, its thousands apart: `-1234567.80 USD` → `-1,234,567.80 USD`. Pure. */
export const grouped = (text: string): string =>
  text.replace(/^-?\d+/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ","));

/** Minor units as a person reads them: `12,345.67 USD`. Pure. */
export const amountText = (minor: bigint, currency: string, exponents: Exponents): string =>
  grouped(moneyText(minor, currency, exponents));

/** Minor units in short, for an axis: `12.5k`; of a currency without known decimals they stay minor units. Pure. */
export function shortAmount(minor: number, currency: string, exponents: Exponents): string {
  const digits = minorDigits(currency, exponents);
  return digits === null ? `${shortNumber(minor)} minor units` : shortNumber(minor / 10 ** digits);
}

/** A number in at most three digits and a letter: `1.2M`. Pure. */
function shortNumber(value: number): string {
  const steps: [number, string][] = [
    [1e12, "T"],
    [1e9, "B"],
    [1e6, "M"],
    [1e3, "k"],
  ];
  const [size, letter] = steps.find(([step]) => Math.abs(value) >= step) ?? [1, ""];
  return `${Number((value / size).toPrecision(3))}${letter}`;
}
