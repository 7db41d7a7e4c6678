import type { Knex } from "knex";
import { UsageError } from "../../platform/errors.ts";
import { counted, someOf } from "../../platform/readable-text.ts";
import { type ReportFacts, readProof, resultLine } from "../base/report-facts.ts";
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
    .first<LastClose | undefined>(db.raw("to_char(month, 'YYYY-MM') as month, time_zone, closed_at"));
  return row ?? null;
}

/** What a month must fulfil to be closed, in the order in which it is looked at. */
export type CloseCheck = "over" | "order" | "zone" | "apart" | "read" | "changes" | "findings" | "days" | "minute";

/** A check that is not fulfilled. */
export interface Hindrance {
  check: CloseCheck;
  /** What is wrong, and what to do. */
  says: string;
}

/**
 * Throws `UsageError` unless the month was over at `asOf`, is the next to be closed, and has the time zone of the last
 * close, which was made before `asOf`.
 */
export async function assertClosable(db: Knex, month: string, period: Period, asOf: Date): Promise<void> {
  const hindrance = await findHindrance(db, month, period, asOf);
  if (hindrance !== null) throw new UsageError(hindrance.says);
}

/** Why a month cannot be closed at all, proved or not; null if it can. One statement. */
async function findHindrance(
  db: Knex,
  month: string,
  { toUtc, timeZone }: Period,
  asOf: Date,
): Promise<Hindrance | null> {
  if (asOf < new Date(toUtc)) {
    const fixedMs = historyFixedAfterSeconds * 1000;
    const first = new Date(Date.parse(toUtc) + fixedMs).toISOString();
    const now = new Date(asOf.getTime() + fixedMs).toISOString();
    return {
      check: "over",
      says:
        `${month} is over at ${toUtc}, the end of its last day in ${timeZone}. It can be closed from ${first} by the ` +
        `database's clock, where it is ${now}.`,
    };
  }
  const last = await lastClose(db);
  if (last === null) return null;
  if (month <= last.month) {
    return {
      check: "order",
      says:
        `${month} cannot be closed: the books are closed through ${last.month}. What is learned later is booked in ` +
        `${monthAfter(last.month)}.`,
    };
  }
  if (month !== monthAfter(last.month)) {
    return {
      check: "order",
      says: `Close ${monthAfter(last.month)} first: the last closed month is ${last.month}.`,
    };
  }
  if (timeZone !== last.time_zone) {
    return {
      check: "zone",
      says:
        `${last.month} was closed in time zone ${last.time_zone}, and TALLYHOOK_TIME_ZONE is ${timeZone}: ` +
        `hours between the two months would be lost or counted twice. ` +
        `Set TALLYHOOK_TIME_ZONE back to ${last.time_zone}.`,
    };
  }
  if (last.closed_at > asOf) {
    const seconds = Math.max(1, Math.ceil((last.closed_at.getTime() - asOf.getTime()) / 1000));
    return {
      check: "apart",
      says:
        `${last.month} was closed just now, and ${month} is closed as of a minute ago. ` +
        `Wait ${counted(seconds, "second")} and run it again.`,
    };
  }
  return null;
}

/** `YYYY-MM`. Pure. */
export function monthAfter(month: string): string {
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
  if (seconds !== null && !isByRows) return tooEarly(unproved, seconds).says;
  const says = [
    ...(await unprovedHindrances(db, { period, asOf, openFindings: proof?.openFindings ?? "0" })),
    ...[...differing].flatMap(([report, days]) => (days.length === 0 ? [] : [differingDays(unproved, report, days)])),
  ].map((hindrance) => hindrance.says);
  if (seconds !== null) {
    says.push(
      `What was recorded in the last minute does not count yet. Run it again in ${counted(seconds, "second")}.`,
    );
  }
  const head = [`${month} is not proved, so nothing was frozen.`, ...verdictLines(abouts)];
  return [...head, ...says, forced].join("\n");
}

/** What waiting resolves. Pure. */
const tooEarly = ({ month, asOf }: Pick<Unproved, "month" | "asOf">, seconds: number): Hindrance => ({
  check: "minute",
  says:
    `${month} is not proved yet: a close is as of a minute ago (${asOf}), and what was read or acknowledged since ` +
    `does not count yet. Wait ${counted(seconds, "second")} and run it again.`,
});

/** What was not read, and what was found, as far as that can be told without the reports' rows. */
async function unprovedHindrances(
  db: Knex,
  { period, asOf, openFindings: open }: Pick<Unproved, "period" | "asOf"> & { openFindings: string },
): Promise<Hindrance[]> {
  const hindrances: Hindrance[] = [];
  const gaps = await unreadParts(db, period, asOf);
  const [never, holes] = [gaps.filter(({ isHole }) => !isHole), gaps.filter(({ isHole }) => isHole)];
  if (never.length > 0) {
    const says = `Not read: ${daysText(never)}. "node src/bin/tallyhook.js reconcile" reads on.`;
    hindrances.push({ check: "read", says });
  }
  if (holes.length > 0) {
    const says =
      `Not proved, since an object could not be read: ${daysText(holes)}. ` +
      `"node src/bin/tallyhook.js findings list" names it. Once the service shows it as it should be, ` +
      `"node src/bin/tallyhook.js reconcile ${rangeOf(holes)}" reads it again.`;
    hindrances.push({ check: "read", says });
  }
  const unread = await unreadChanges(db, period, asOf);
  if (gaps.length === 0 && unread !== null) {
    const since = unread.since === null ? "never been read" : `not been read since ${unread.since}`;
    hindrances.push({
      check: "changes",
      says:
        `Chargebacks, voids and settlements of older sales have ${since}. "node src/bin/tallyhook.js reconcile" ` +
        `reads the lists that ` +
        `show them, or says why the service does not.`,
    });
  }
  if (open !== "0") {
    const found = await openFindings(db, period, asOf);
    hindrances.push({
      check: "findings",
      says:
        `Open findings (${open}): ${someOf(found, shownAtMost)}. ` +
        `"node src/bin/tallyhook.js findings show ID" explains one. ` +
        `Heal it, or acknowledge it with "node src/bin/tallyhook.js findings ack ID --note REASON".`,
    });
  }
  return hindrances;
}

const differingDays = (
  { month, period }: Pick<Unproved, "month" | "period">,
  report: string,
  days: readonly string[],
): Hindrance => ({
  check: "days",
  says:
    `${report} differs on ${someOf(days, shownAtMost)}. ` +
    `"node src/bin/tallyhook.js reconcile --from ${period.fromUtc} --to ${period.toUtc}" ` +
    `reads the month again, "node src/bin/tallyhook.js report ${report} --from ${month}" shows the days.`,
});

/**
 * What keeps a month from being closed as of `at`, as far as that can be told in a moment: whether the sums of each day
 * are the service's (`days`) takes the reports themselves. Empty if nothing does. A few statements.
 */
export async function findHindrances(db: Knex, month: string, period: Period, at: Date): Promise<Hindrance[]> {
  const first = await findHindrance(db, month, period, at);
  if (first !== null) return [first];
  const asOf = at.toISOString();
  const proof = await readProof(db, period, asOf);
  if (proof.verdict === "PASS") return [];
  const seconds = await secondsUntilProved(db, period, asOf);
  if (seconds !== null) return [tooEarly({ month, asOf }, seconds)];
  const { openFindings } = proof;
  const hindrances = await unprovedHindrances(db, { period, asOf, openFindings });
  if (hindrances.length > 0) return hindrances;
  return [{ check: "read", says: `${resultLine({ proof, period, asOf })}.` }];
}

/** One line for each verdict other than PASS: `INCOMPLETE: all 15 reports.`, or their names. Pure. */
function verdictLines(abouts: readonly ReportFacts[]): string[] {
  const byVerdict = new Map<string, string[]>();
  for (const { report, proof } of abouts) {
    if (proof.verdict === "PASS") continue;
    byVerdict.set(proof.verdict, [...(byVerdict.get(proof.verdict) ?? []), report]);
  }
  return [...byVerdict].map(([verdict, names]) =>
    names.length === abouts.length ? `${verdict}: all ${names.length} reports.` : `${verdict}: ${names.join(", ")}.`,
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

/**
 * Since when changes to older objects were not read: `since` is null if they never were. Null if they were read up to
 * the end of the period. One statement.
 */
async function unreadChanges(db: Knex, { toUtc }: Period, asOf: string): Promise<{ since: string | null } | null> {
  const { rows } = await db.raw<{ rows: { since: string | null }[] }>(
    `select to_char(c.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as since
     from reports.changes_read_until(?) as c(at) where c.at is null or c.at < cast(? as timestamptz)`,
    [asOf, toUtc],
  );
  return rows[0] ?? null;
}

/** What no fresh slice of a resource proves. */
interface UnreadPart {
  resource: string;
  /** Days of the report's zone; `from_day` is null from the first record on. */
  from_day: string | null;
  to_day: string;
  from_utc: string | null;
  to_utc: string;
  /** It was read, but for an object that could not be read: no nightly run lists it again before its turn. */
  isHole: boolean;
}

/** One statement. */
async function unreadParts(db: Knex, { toUtc, timeZone }: Period, asOf: string): Promise<UnreadPart[]> {
  const { rows } = await db.raw<{ rows: UnreadPart[] }>(
    `select k.resource,
            case when not lower_inf(g.gap)
                 then to_char(lower(g.gap) at time zone :timeZone, 'YYYY-MM-DD') end as from_day,
            to_char((upper(g.gap) - interval '1 microsecond') at time zone :timeZone, 'YYYY-MM-DD') as to_day,
            to_char(lower(g.gap) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as from_utc,
            to_char((upper(g.gap) + interval '1 second') at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as to_utc,
            g.gap <@ f.walked as "isHole"
     from mirror.resources() k
     cross join lateral (
       select coalesce(range_agg(s.bounds), '{}') as bounds, coalesce(range_agg(s.walked), '{}') as walked
       from reports.fresh_slices(:asOf) s where s.resource = k.resource
     ) f
     cross join lateral unnest(tstzmultirange(tstzrange(null, :toUtc)) - f.bounds) as g(gap)
     order by k.n, lower(g.gap) nulls first`,
    { timeZone, toUtc, asOf },
  );
  return rows;
}

/** `orders, transactions of 2026-11-03; customers up to 2026-11-30`. Pure. */
function daysText(parts: readonly UnreadPart[]): string {
  const byDays = new Map<string, string[]>();
  for (const { resource, from_day: from, to_day: to } of parts) {
    const days = from === null ? `up to ${to}` : from === to ? `of ${from}` : `from ${from} to ${to}`;
    byDays.set(days, [...new Set([...(byDays.get(days) ?? []), `${resource}s`])]);
  }
  return [...byDays].map(([days, resources]) => `${resources.join(", ")} ${days}`).join("; ");
}

/** What a run is asked for to read these parts. Pure. */
function rangeOf(parts: readonly UnreadPart[]): string {
  const froms = parts.map(({ from_utc: from }) => from ?? "").sort();
  const last = parts
    .map(({ to_utc: to }) => to)
    .sort()
    .at(-1);
  return froms[0] === "" ? "--full" : `--from ${froms[0]} --to ${last}`;
}

const shownAtMost = 5;

/** The findings that block the period, in words, the oldest first. One statement. */
async function openFindings(db: Knex, { toUtc, timeZone }: Period, asOf: string): Promise<string[]> {
  const { rows } = await db.raw<{ rows: { line: string }[] }>(
    `select f.finding || ' (' || 
            concat_ws(' ', f.severity, replace(f.class, '_', ' '), f.identity, f.resource, f.object_id) ||
            ', since ' || to_char(f.first_seen at time zone ?, 'YYYY-MM-DD') || ')' as line
     from reports.open_findings(?, ?) f where f.is_serious
     order by f.first_seen, f.finding`,
    [timeZone, toUtc, asOf],
  );
  return rows.map(({ line }) => line);
}
