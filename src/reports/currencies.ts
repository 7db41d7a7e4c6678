import type { Knex } from "knex";
import { UsageError } from "../platform/errors.ts";

/** Decimals by currency in lower case: those of `platform/money.ts`, or what a month was closed with. */
export type Exponents = ReadonlyMap<string, number>;

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
