import type { Knex } from "knex";
import { UsageError } from "../../platform/errors.ts";
import { counted, someOf } from "../../platform/readable-text.ts";
import { type ReportFacts, readProof } from "../base/report-facts.ts";
import { type Period, historyFixedAfterSeconds } from "../base/period.ts";

interface LastClose {
  month: string;
  time_zone: string;
  closed_at: Date;
}

/** The newest close; null if there is none. */
async function lastClose(db: Knex): Promise<LastClose | null> {
  const row = await db("reports.closes")
    .orderBy("month", "desc")
    .first<LastClose | undefined>(
      db.raw("to_char(month, 'YYYY-MM') as month, time_zone, closed_at"),
    );
  return row ?? null;
}

/** Throws `UsageError` unless the month is over, is the next to be closed, and has the time zone of the last close. */
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

interface Unproved {
  month: string;
  period: Period;
  /** ISO 8601. */
  asOf: string;
  abouts: readonly ReportFacts[];
  /** For each report, the days that make it fail. */
  differing: ReadonlyMap<string, readonly string[]>;
}

const forced = `--force "REASON" closes it all the same and prints the reason on every report of it.`;

/** Explains why a month is not proved: which reports, which days, and the command for each. */
export async function whyNotProved(db: Knex, unproved: Unproved): Promise<string> {
  const { month, period, asOf, abouts, differing } = unproved;
  const seconds = await secondsUntilProved(db, period, asOf);
  const [proof] = abouts.map((about) => about.proof);
  const isByRows = [...differing.values()].some((days) => days.length > 0);
  if (seconds !== null && !isByRows) {
    return (
      `${month} is not proved yet: what was read or acknowledged in the last minute is younger than the cut-off ` +
      `of a close, which is a minute ago (${asOf}). Wait ${counted(seconds, "second")} and run it again.`
    );
  }
  const lines = [`${month} is not proved, so nothing was frozen.`, ...verdictLines(abouts)];
  const gaps = await unreadDays(db, period, asOf);
  if (gaps.length > 0) {
    lines.push(`Not read: ${gaps.join("; ")}. "tallyhook reconcile" reads on.`);
  }
  const unreadSince = await changesUnreadSince(db, period, asOf);
  if (gaps.length === 0 && unreadSince !== null) {
    lines.push(
      `Not read since ${unreadSince}: a list that shows chargebacks, voids and settlements of older sales. ` +
        `"tallyhook reconcile" reads it, or says why the service does not show it.`,
    );
  }
  if (proof !== undefined && proof.openFindings !== "0") {
    const found = await openFindings(db, period, asOf);
    lines.push(
      `Open findings (${proof.openFindings}): ${found.join("; ")}. "tallyhook findings show ID" explains one; ` +
        `heal it, or "tallyhook findings ack ID" says why it may stay.`,
    );
  }
  for (const [report, days] of differing) {
    if (days.length === 0) continue;
    lines.push(
      `${report} differs on ${someOf(days, shownAtMost)}. "tallyhook reconcile --from ${period.fromUtc} --to ${period.toUtc}" ` +
        `reads the month again, "tallyhook report ${report} --from ${month}" shows the days.`,
    );
  }
  if (seconds !== null) {
    lines.push(
      `What was read in the last minute is not counted in this; it is in ${counted(seconds, "second")}.`,
    );
  }
  return [...lines, forced].join("\n");
}

/** One line for each verdict other than PASS: `INCOMPLETE: all 14 reports.`, or their names. Pure. */
function verdictLines(abouts: readonly ReportFacts[]): string[] {
  const byVerdict = new Map<string, string[]>();
  for (const { report, proof } of abouts) {
    if (proof.verdict === "PASS") continue;
    byVerdict.set(proof.verdict, [...(byVerdict.get(proof.verdict) ?? []), report]);
  }
  return [...byVerdict].map(([verdict, names]) =>
    names.length === abouts.length
      ? `${verdict}: all ${names.length} reports.`
      : `${verdict}: ${names.join(", ")}.`,
  );
}

/**
 * Seconds until what was recorded since the cut-off proves the month; null if waiting does not help, because the month
 * is not proved now either, or nothing was recorded since.
 */
async function secondsUntilProved(db: Knex, period: Period, asOf: string): Promise<number | null> {
  const now = await readProof(db, period, null);
  if (now.verdict !== "PASS") return null;
  const { rows } = await db.raw<{ rows: { seconds: number | null }[] }>(
    `select ceil(extract(epoch from
              max(recorded_at) + make_interval(secs => :historyFixedAfterSeconds) - clock_timestamp()))::int as seconds
     from (
       select max(s.recorded_at) as recorded_at from reconcile.run_states s
       union all
       select max(v.recorded_at) from reconcile.finding_versions v
       union all
       select max(d.settled_at) from reconcile.doubts d
     ) last where recorded_at > cast(:asOf as timestamptz)`,
    { historyFixedAfterSeconds, asOf },
  );
  const seconds = rows[0]?.seconds ?? null;
  return seconds === null ? null : Math.max(seconds, 1);
}

/** The time up to which changes to older objects were read; null if that covers the period. One statement. */
async function changesUnreadSince(
  db: Knex,
  { toUtc }: Period,
  asOf: string,
): Promise<string | null> {
  const { rows } = await db.raw<{ rows: { since: string }[] }>(
    `select coalesce(to_char(c.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), 'the beginning') as since
     from reports.changes_read_until(?) as c(at) where c.at is null or c.at < cast(? as timestamptz)`,
    [asOf, toUtc],
  );
  return rows[0]?.since ?? null;
}

/** The days, in the report's zone, that no fresh slice of a resource shows. One statement. */
async function unreadDays(db: Knex, { toUtc, timeZone }: Period, asOf: string): Promise<string[]> {
  const { rows } = await db.raw<{
    rows: { resource: string; from_day: string | null; to_day: string }[];
  }>(
    `select k.resource,
            case when not lower_inf(g.gap)
                 then to_char(lower(g.gap) at time zone :timeZone, 'YYYY-MM-DD') end as from_day,
            to_char((upper(g.gap) - interval '1 microsecond') at time zone :timeZone, 'YYYY-MM-DD') as to_day
     from mirror.resources() k
     cross join lateral unnest(
       tstzmultirange(tstzrange(null, :toUtc)) - coalesce((
         select range_agg(s.bounds) from reports.fresh_slices(:asOf) s where s.resource = k.resource), '{}')
     ) as g(gap)
     order by k.n, lower(g.gap) nulls first`,
    { timeZone, toUtc, asOf },
  );
  const byDays = new Map<string, string[]>();
  for (const { resource, from_day: from, to_day: to } of rows) {
    const days =
      from === null ? `up to ${to}` : from === to ? `of ${from}` : `from ${from} to ${to}`;
    byDays.set(days, [...(byDays.get(days) ?? []), `${resource}s`]);
  }
  return [...byDays].map(([days, resources]) => `${resources.join(", ")} ${days}`);
}

const shownAtMost = 5;

/** The first few findings that block the period, in words. One statement. */
async function openFindings(
  db: Knex,
  { toUtc, timeZone }: Period,
  asOf: string,
): Promise<string[]> {
  const { rows } = await db.raw<{ rows: { line: string }[] }>(
    `select f.finding || ' (' || 
            concat_ws(' ', f.severity, replace(f.class, '_', ' '), f.identity, f.resource, f.object_id) ||
            ', since ' || to_char(f.first_seen at time zone ?, 'YYYY-MM-DD') || ')' as line
     from reports.open_findings(?, ?) f where f.is_serious
     order by f.first_seen, f.finding limit ?`,
    [timeZone, toUtc, asOf, shownAtMost],
  );
  return rows.map(({ line }) => line);
}
