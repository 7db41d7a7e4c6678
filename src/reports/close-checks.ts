import type { Knex } from "knex";
import { UsageError } from "../platform/errors.ts";
import type { Period } from "./period.ts";
import type { Proof } from "./verdict.ts";

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
      `${month} is closed: closed months end with ${last.month}. What is learned later is booked in ${monthAfter(last.month)}.`,
    );
  }
  if (month !== monthAfter(last.month)) {
    throw new UsageError(
      `Close ${monthAfter(last.month)} first: the last closed month is ${last.month}.`,
    );
  }
  if (timeZone !== last.time_zone) {
    throw new UsageError(
      `${last.month} was closed by the days of ${last.time_zone}, and TALLYHOOK_TIME_ZONE is ${timeZone}: hours between ` +
        `the two months would be lost or counted twice. Set it back.`,
    );
  }
  if (last.closed_at > asOf) {
    throw new UsageError(`${last.month} was closed just now. Try again in a minute.`);
  }
}

function monthAfter(month: string): string {
  const [year, number] = month.split("-").map(Number);
  return new Date(Date.UTC(year ?? 0, number ?? 1, 1)).toISOString().slice(0, 7);
}

/** Throws `UsageError` unless all is proved, or a reason is given that is printed on the close for ever. */
export function assertProved(
  { verdict, readUntil, openFindings }: Proof,
  reason: string | null,
): void {
  if (verdict === "PASS" || reason !== null) return;
  const why =
    verdict === "INCOMPLETE"
      ? `not everything was read (read until ${readUntil ?? "never"}): run "tallyhook reconcile"`
      : `${openFindings} findings are open, or rows differ: "tallyhook report exceptions" shows them`;
  throw new UsageError(
    `The month is not proved: ${why}. --force "REASON" closes it all the same and prints the reason on every report of it.`,
  );
}
