import type { Knex } from "knex";
import { sqlArray } from "../platform/sql-array.ts";
import { canonicalTimestamp } from "../service/timestamp.ts";

/** A slice of one run's walk. */
export interface SliceKey {
  run: number;
  slice: number;
}

/** What the sums need of a transaction as the service's list shows it. */
export interface SummedTransaction {
  createdAt: string;
  currency: string;
  type: string;
  status: string;
  /** Minor units. */
  amountMinor: number;
}

type WireObject = Readonly<Record<string, unknown>>;

/** Of a page of transactions those that can be summed; what cannot be read is found by other means. */
export function summedTransactions(items: readonly WireObject[]): SummedTransaction[] {
  return items.flatMap((item) => {
    const { created_at, currency, type, status, amount } = item;
    const createdAt = typeof created_at === "string" ? canonicalTimestamp(created_at) : null;
    const isWhole =
      createdAt !== null &&
      typeof currency === "string" &&
      typeof type === "string" &&
      typeof status === "string" &&
      Number.isSafeInteger(amount);
    if (!isWhole) return [];
    return [{ createdAt, currency, type, status, amountMinor: amount as number }];
  });
}

/**
 * Adds one page of transactions to the daily sums of its slice, which the identity `control` compares with the mirror.
 * `timeZone` (IANA) cuts the days. Not idempotent: call it in the transaction that moves the slice's checkpoint.
 */
export async function addDailySums(
  trx: Knex.Transaction,
  { run, slice }: SliceKey,
  timeZone: string,
  transactions: readonly SummedTransaction[],
): Promise<void> {
  if (transactions.length === 0) return;
  await trx.raw(
    `insert into reconcile.daily_sums as s (run, slice, day, currency, type, status, n, sum_minor)
     select ?, ?, cast(created_at at time zone ? as date) as day, currency, type, status, count(*), sum(amount)
     from unnest(?::timestamptz[], ?::text[], ?::text[], ?::text[], ?::bigint[])
       as t(created_at, currency, type, status, amount)
     group by day, currency, type, status
     on conflict (run, slice, day, currency, type, status)
       do update set n = s.n + excluded.n, sum_minor = s.sum_minor + excluded.sum_minor`,
    [
      run,
      slice,
      timeZone,
      sqlArray(transactions.map(({ createdAt }) => createdAt)),
      sqlArray(transactions.map(({ currency }) => currency)),
      sqlArray(transactions.map(({ type }) => type)),
      sqlArray(transactions.map(({ status }) => status)),
      sqlArray(transactions.map(({ amountMinor }) => amountMinor)),
    ],
  );
}

/** Begins a slice's sums anew, as its walk does when the service refuses its cursor. Needs that transaction. */
export async function clearDailySums(trx: Knex.Transaction, slice: SliceKey): Promise<void> {
  await trx("reconcile.daily_sums").where(slice).delete();
}
