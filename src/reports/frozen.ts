import type { Knex } from "knex";
import { TallyhookError } from "../platform/errors.ts";
import type { About } from "./about.ts";
import type { Period } from "./period.ts";
import type { TakeRows } from "./read-report.ts";
import { createRowHash } from "./row-hash.ts";
import type { Column, Report, Row } from "./report.ts";

/** A report as a close froze it. */
export interface FrozenReport {
  close: string;
  report: string;
  columns: readonly Column[];
  about: About;
}

/** The frozen rows of exactly this period, if it is a closed month. */
export async function findFrozen(
  db: Knex,
  { from, to, timeZone }: Pick<Period, "from" | "to" | "timeZone">,
  { name }: Pick<Report, "name">,
): Promise<FrozenReport | null> {
  const { rows } = await db.raw<{ rows: FrozenReport[] }>(
    `select r.close, r.report, r.columns, r.about || jsonb_build_object('close', jsonb_build_object(
              'month', to_char(c.month, 'YYYY-MM'), 'id', c.id::text, 'reason', c.reason,
              'closedAt', to_char(c.closed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))) as about
     from reports.closes c join reports.closed_reports r on r.close = c.id
     where c.month = cast(? as date) and (c.month + interval '1 month' - interval '1 day')::date = cast(? as date)
       and c.time_zone = ? and r.report = ?`,
    [from, to, timeZone, name],
  );
  return rows[0] ?? null;
}

const rowsAtOnce = 5_000;

/**
 * Gives the frozen rows to `take`, all or those of one currency. Throws when they are not what was signed: the hash is computed
 * anew.
 */
export async function readFrozen(
  db: Knex,
  { close, report, columns, about }: FrozenReport,
  currency: string | null,
  take: TakeRows,
): Promise<About> {
  const [signed, given] = [createRowHash(columns), createRowHash(columns)];
  const currencyAt = columns.findIndex(({ name }) => name === "currency");
  for (let after = 0; ; after += rowsAtOnce) {
    const stored = await db("reports.closed_rows")
      .where({ close, report })
      .whereBetween("n", [after + 1, after + rowsAtOnce])
      .orderBy("n")
      .pluck<Row[]>("cells");
    if (stored.length === 0) break;
    signed.add(stored);
    const wanted =
      currency === null ? stored : stored.filter((row) => row[currencyAt] === currency);
    given.add(wanted);
    if (wanted.length > 0) await take(wanted);
  }
  if (signed.digest().sha256 !== about.sha256) {
    throw new TallyhookError(
      `The frozen rows of ${report} for ${about.close?.month} are not those that were closed: their SHA-256 is not ` +
        `${about.sha256}. Somebody changed schema reports by hand; restore it from a backup.`,
    );
  }
  return { ...about, currency, ...given.digest() };
}
