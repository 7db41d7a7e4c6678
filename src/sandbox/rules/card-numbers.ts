import type { VaultedCard } from "../store/vault.ts";
import { testCards } from "./cards.ts";

const byNumber = new Map(
  Object.entries(testCards).flatMap(([token, { number }]) =>
    number === undefined ? [] : [[number, token] as const],
  ),
);

/** Brands by their leading digits, the first that fits. */
const brands: readonly (readonly [RegExp, string])[] = [
  [/^4/, "visa"],
  [/^(5[1-5]|2[2-7])/, "mastercard"],
  [/^3[47]/, "amex"],
  [/^(6011|64[4-9]|65)/, "discover"],
  [/^3(0[0-5]|[68])/, "diners"],
  [/^35/, "jcb"],
];

/** Whether a number stands in the interface's table of test cards. */
export function isTestCardNumber(number: string): boolean {
  return byNumber.has(number);
}

/**
 * What the vault keeps of a card: everything but its number. Any number that is in no table succeeds (spec, Sandbox), those of
 * other providers' test sets too.
 */
export function cardOfNumber(
  number: string,
  expiry: { month: number; year: number },
): Omit<VaultedCard, "billing_id"> {
  const behaviour = byNumber.get(number) ?? "card_visa";
  const brand = brands.find(([pattern]) => pattern.test(number))?.[1] ?? "unknown";
  const exp = `${String(expiry.month).padStart(2, "0")}/${expiry.year}`;
  return { behaviour, last4: number.slice(-4), brand, exp };
}
