import type { Knex } from "knex";
import { UsageError } from "../../../platform/errors.ts";
import { minorDigits, moneyText } from "../../../platform/money.ts";

/** Decimals by currency in lower case: those of `platform/money.ts`, or those that a month was closed with. */
export type Exponents = ReadonlyMap<string, number>;

/**
 * Checks `--currency` against the currencies in the mirror. Throws `UsageError` that lists them. The query skips from
 * one currency to the next in the index, so the number of rows does not matter.
 */
export async function findCurrency(db: Knex, given: string): Promise<string> {
  const currency = given.toLowerCase();
  const { rows } = await db.raw<{ rows: { currency: string }[] }>(
    `with recursive known as (
       select min(currency) as currency from mirror.transactions
       union all
       select (select min(t.currency) from mirror.transactions t where t.currency > k.currency) from known k
       where k.currency is not null)
     select currency from known where currency is not null order by 1`,
  );
  const known = rows.map((row) => row.currency);
  if (known.includes(currency)) return currency;
  const possible = known.length === 0 ? "The mirror is empty." : `The mirror holds ${known.join(", ")}.`;
  throw new UsageError(`No transaction is in the currency "${given}". ${possible}`);
}

/** Separates the thousands of the number that a text begins with: `-1234567.80 USD` → `-1,234,567.80 USD`. */
export const grouped = (text: string): string =>
  text.replace(/^-?\d+/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ","));

/** Prints minor units for people: `12,345.67 USD`. */
export const amountText = (minor: bigint, currency: string, exponents: Exponents): string =>
  grouped(moneyText(minor, currency, exponents));

/** Prints minor units in short, for an axis: `12.5k`. Without known decimals they stay minor units. */
export function shortAmount(minor: number, currency: string, exponents: Exponents): string {
  const digits = minorDigits(currency, exponents);
  return digits === null ? `${shortNumber(minor)} minor units` : shortNumber(minor / 10 ** digits);
}

/** Prints a number in at most three digits and a letter: `1.2M`. */
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
