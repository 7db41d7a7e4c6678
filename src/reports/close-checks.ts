import type { Knex } from "knex";
import { UsageError } from "../platform/errors.ts";
import type { Period } from "./period.ts";
import { counted } from "../platform/counted.ts";

interface LastClose {
  month: string;
  time_zone: string;
  closed_at: Date;
}

/** The newest close; null before the first. */
async function lastClose(db: Knex): Promise<LastClose | null> {
  const row = await db("reports.closes")
    .orderBy("month", "desc")
    .first<LastClose | undefined>(
      db.raw("to_char(month, 'YYYY-MM') as month, time_zone, closed_at"),
    );
  return row ?? null;
}

/** Throws `UsageError` unless the month is over and is the next one to be closed, by the same zone as before. */
export async function assertClosable(
  db: Knex,
  month: string,
  { toUtc, timeZone }: Period,
  asOf: Date,
): Promise<void> {
  if (asOf < new Date(toUtc)) {
    throw new UsageError(
      `${month} can be closed a minute after it is over, at ${toUtc} (${timeZone}) or later.`,
    );
  }
  const last = await lastClose(db);
  if (last === null) return;
  if (month <= last.month) {
    throw new UsageError(
      `${month} is closed: closed months end with ${last.month}. What is learned later is booked in ` +
        `${monthAfter(last.month)}.`,
    );
  }
  if (month !== monthAfter(last.month)) {
    throw new UsageError(
      `Close ${monthAfter(last.month)} first: the last closed month is ${last.month}.`,
    );
  }
  if (timeZone !== last.time_zone) {
    throw new UsageError(
      `${last.month} was closed by the days of ${last.time_zone}, and TALLYHOOK_TIME_ZONE is ${timeZone}: ` +
        `hours between the two months would be lost or counted twice. Set it back.`,
    );
  }
  if (last.closed_at > asOf) {
    const seconds = Math.max(1, Math.ceil((last.closed_at.getTime() - asOf.getTime()) / 1000));
    throw new UsageError(
      `${last.month} was closed just now, and ${month} is closed as of a minute ago. ` +
        `Wait ${counted(seconds, "second")} and run it again.`,
    );
  }
}

function monthAfter(month: string): string {
  const [year, number] = month.split("-").map(Number);
  return new Date(Date.UTC(year ?? 0, number ?? 1, 1)).toISOString().slice(0, 7);
}
