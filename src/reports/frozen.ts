import type { Knex } from "knex";
import { TallyhookError } from "../platform/errors.ts";
import type { About } from "./about.ts";
import { closeSha256 } from "./close-statement.ts";
import type { CloseFacts } from "./close-statement.ts";
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
              'month', to_char(c.month, 'YYYY-MM'), 'id', c.id::text, 'reason', c.reason, 'sha256', c.sha256,
              'closedAt', to_char(c.closed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))) as about
     from reports.closes c join reports.closed_reports r on r.close = c.id
     where c.month = cast(? as date) and (c.month + interval '1 month' - interval '1 day')::date = cast(? as date)
       and c.time_zone = ? and r.report = ?`,
    [from, to, timeZone, name],
  );
  return rows[0] ?? null;
}

interface SignedClose extends Omit<CloseFacts, "asOf"> {
  asOf: Date;
  sha256: string;
  covers: "rows" | "results";
  abouts: About[];
}

/** Throws when what a close says of its month or of any report is not what was signed. One statement. */
async function assertSigned(db: Knex, close: string): Promise<void> {
  const { rows } = await db.raw<{ rows: SignedClose[] }>(
    `select to_char(c.month, 'YYYY-MM') as month, c.time_zone as "timeZone", c.as_of as "asOf", c.verdict, c.reason,
            c.sha256, c.sha256_covers as covers,
            (select jsonb_agg(r.about) from reports.closed_reports r where r.close = c.id) as abouts
     from reports.closes c where c.id = ?`,
    [close],
  );
  const [signed] = rows;
  // What was closed by an earlier version has a hash of the rows' hashes alone.
  if (signed?.covers !== "results") return;
  const facts = { ...signed, asOf: signed.asOf.toISOString() };
  if (closeSha256(facts, signed.abouts) === signed.sha256) return;
  throw new TallyhookError(
    `The close of ${signed.month} does not say what was signed: its SHA-256 is not ${signed.sha256}. Somebody changed schema ` +
      `reports by hand; restore it from a backup.`,
  );
}

const rowsAtOnce = 5_000;

/**
 * Gives the frozen rows to `take`, all or those of one currency. Throws when they, or what the close says of them, are not what was
 * signed: the hashes are computed anew.
 */
export async function readFrozen(
  db: Knex,
  { close, report, columns, about }: FrozenReport,
  currency: string | null,
  take: TakeRows,
): Promise<About> {
  await assertSigned(db, close);
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
