import type { Knex } from "knex";
import { UsageError } from "../../../platform/errors.ts";

/** First and last day, both included, as `YYYY-MM-DD` in a time zone. */
export interface Days {
  from: string;
  to: string;
}

/** Whole days of one time zone as `[fromUtc, toUtc)`. A day may have 23, 24 or 25 hours. */
export interface Period extends Days {
  timeZone: string;
  fromUtc: string;
  toUtc: string;
}

/** The days that a report may cover. */
export const earliestDay = "2000-01-01";
export const latestDay = "2100-12-31";

/** Whether a text is a month that can be closed, as in `2026-10`. */
export const isMonth = (text: string): boolean =>
  /^\d{4}-(0[1-9]|1[0-2])$/.test(text) && text >= earliestDay.slice(0, 7) && text <= latestDay.slice(0, 7);

/**
 * Reads `--from` and `--to`: days, or months, which mean their first and last day. `from` defaults to the first day of
 * the month of `to`; `to` defaults to today, or to the end of a month given as `from`. Throws `UsageError`.
 */
export function parseDays(given: { from?: string; to?: string }, today: string): Days {
  const first = given.from === undefined ? undefined : dayOf("--from", given.from, "first");
  const isFromAMonth = given.from?.length === 7;
  const to =
    given.to === undefined && given.from !== undefined && isFromAMonth
      ? dayOf("--from", given.from, "last")
      : dayOf("--to", given.to ?? today, "last");
  const from = first ?? dayOf("--from", to.slice(0, 7), "first");
  if (from > to) {
    throw new UsageError(
      given.to === undefined
        ? `--from ${from} is after today, ${to}. Use an earlier day, or a month.`
        : `--from ${from} is after --to ${to}. Give the earlier day first; both days are in the report.`,
    );
  }
  return { from, to };
}

function dayOf(option: string, text: string, edge: "first" | "last"): string {
  const match = /^(\d{4})-(\d{2})(?:-(\d{2}))?$/.exec(text);
  const [year, month] = [Number(match?.[1]), Number(match?.[2])];
  const lastDay = new Date(Date.UTC(year, month, 0)).getUTCDate();
  const day = match?.[3] === undefined ? (edge === "first" ? 1 : lastDay) : Number(match[3]);
  if (match === null || month < 1 || month > 12 || day < 1 || day > lastDay) {
    throw new UsageError(`${option} "${text}" is not a day. Use a day such as 2026-10-31, or a month such as 2026-10.`);
  }
  const found = `${match[1]}-${match[2]}-${String(day).padStart(2, "0")}`;
  if (found < earliestDay || found > latestDay) {
    throw new UsageError(`${option} ${found} is out of range. Use ${earliestDay} to ${latestDay}.`);
  }
  return found;
}

/** Days begin by the database's time zone rules, as they do in the SQL of the reports. One statement. */
export async function resolvePeriod(db: Knex, days: Days, timeZone: string): Promise<Period> {
  const bound = (day: string) =>
    `to_char(reports.day_start(${day}, :timeZone) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`;
  const { rows } = await db.raw<{ rows: { from_utc: string; to_utc: string }[] }>(
    `select ${bound("cast(:from as date)")} as from_utc, ${bound("cast(:to as date) + 1")} as to_utc`,
    { ...days, timeZone },
  );
  const [row] = rows;
  if (row === undefined) throw new Error("the database did not answer with the bounds of a period");
  return { ...days, timeZone, fromUtc: row.from_utc, toUtc: row.to_utc };
}

/**
 * The age that a time must have before a report can be made as of it. `recorded_at` is set when a row is written, and a
 * writing transaction is cut off after 30 s (`transactionMs` in mirror/write/apply.ts). So a minute later the history
 * of that time is final, and a repeat gives the same bytes.
 */
export const historyFixedAfterSeconds = 60;

/** The latest time that a report can be made as of, by the database's clock. One statement. */
export async function latestAsOf(db: Knex): Promise<Date> {
  const { rows } = await db.raw<{ rows: { at: Date }[] }>(
    `select date_trunc('milliseconds', clock_timestamp() - make_interval(secs => ?)) as at`,
    [historyFixedAfterSeconds],
  );
  const [row] = rows;
  if (row === undefined) throw new Error("the database did not tell the time");
  return row.at;
}

/** Throws `UsageError` if the history of that time may still grow. */
export function assertHistoryFixed(asOf: Date, latest: Date): void {
  if (asOf <= latest) return;
  throw new UsageError(
    `--as-of ${asOf.toISOString()} is later than a minute ago: records of that time may still arrive. ` +
      `Use ${latest.toISOString()} or earlier, or leave out --as-of for what the mirror holds now.`,
  );
}
