import { exponentOf, formatMinor } from "../currencies.ts";
import type { Exponents } from "../currencies.ts";

/** A decimal number with its thousands apart: `-1234567.80` → `-1,234,567.80`. Pure. */
export function grouped(number: string): string {
  const [whole = "", decimals] = number.split(".");
  const apart = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return decimals === undefined ? apart : `${apart}.${decimals}`;
}

/** Minor units as a person reads them: `12,345.67 USD`. Pure. */
export function amountText(minor: bigint, currency: string, exponents: Exponents): string {
  const number = formatMinor(minor.toString(), exponentOf(exponents, currency));
  return `${grouped(number)} ${currency.toUpperCase()}`;
}

/** Minor units in short, for an axis: `12.5k`. Pure. */
export function shortAmount(minor: number, currency: string, exponents: Exponents): string {
  return shortNumber(minor / 10 ** exponentOf(exponents, currency));
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
