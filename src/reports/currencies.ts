import type { Knex } from "knex";
import { UsageError } from "../platform/errors.ts";

/** Decimals of a minor unit by ISO 4217, for currencies in lower case. What it does not name has 2. */
export type Exponents = ReadonlyMap<string, number>;

export async function readExponents(db: Knex): Promise<Exponents> {
  const rows = await db("reports.currencies").select<{ code: string; exponent: number }[]>(
    "code",
    "exponent",
  );
  return new Map(rows.map(({ code, exponent }) => [code, exponent]));
}

const usualExponent = 2;

export const exponentOf = (exponents: Exponents, currency: string | null): number =>
  exponents.get(currency ?? "") ?? usualExponent;

/** Minor units as a decimal number, exact at any size: `1234`, usd → `12.34`. Pure. */
export function formatMinor(minor: string, exponent: number): string {
  if (exponent === 0) return minor;
  const sign = minor.startsWith("-") ? "-" : "";
  const digits = minor.slice(sign.length).padStart(exponent + 1, "0");
  return `${sign}${digits.slice(0, -exponent)}.${digits.slice(-exponent)}`;
}

/**
 * Reads `--currency` against what the mirror holds. Throws `UsageError` that says what is possible. The mirror's
 * currencies are found by skipping from one to the next in the index, however many rows there are.
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
  const possible =
    known.length === 0 ? "The mirror is empty." : `The mirror holds ${known.join(", ")}.`;
  throw new UsageError(`There is nothing in the currency "${given}". ${possible}`);
}
