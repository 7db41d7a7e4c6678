import type { Knex } from "knex";
import { type ReportFacts, readProof } from "../base/report-facts.ts";
import { type Period, historyFixedAfterSeconds } from "../base/period.ts";
import { CloseRefused, type CloseRefusal, type Hindrance, type OpenFinding, type UnreadPart } from "./hindrance.ts";

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

/**
 * Throws `CloseRefused` unless the month was over at `asOf`, is the next to be closed, and has the time zone of the last
 * close, which was made before `asOf`.
 */
export async function assertClosable(db: Knex, month: string, period: Period, asOf: Date): Promise<void> {
  const hindrance = await findHindrance(db, month, period, asOf);
  if (hindrance !== null) throw new CloseRefused({ month, verdicts: [], hindrances: [hindrance] });
}

/** The obstacle that no proof can remove; null if there is none. One statement. */
async function findHindrance(
  db: Knex,
  month: string,
  { toUtc, timeZone }: Period,
  asOf: Date,
): Promise<Hindrance | null> {
  if (asOf < new Date(toUtc)) {
    const fixedMs = historyFixedAfterSeconds * 1000;
    const closableFrom = new Date(Date.parse(toUtc) + fixedMs).toISOString();
    const now = new Date(asOf.getTime() + fixedMs).toISOString();
    return { check: "over", month, endsAt: toUtc, timeZone, closableFrom, now };
  }
  const last = await lastClose(db);
  if (last === null) return null;
  const closedThrough = last.month;
  const next = monthAfter(closedThrough);
  if (month !== next) return { check: "order", month, closedThrough, next };
  if (timeZone !== last.time_zone) {
    return { check: "zone", closedThrough, was: last.time_zone, is: timeZone };
  }
  if (last.closed_at > asOf) {
    const seconds = Math.max(1, Math.ceil((last.closed_at.getTime() - asOf.getTime()) / 1000));
    return { check: "apart", month, closedThrough, seconds };
  }
  return null;
}

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

/** The reasons why a month is not proved: the reports, the days, the findings. */
export async function whyNotProved(db: Knex, unproved: Unproved): Promise<CloseRefusal> {
  const { month, period, asOf, abouts, differing } = unproved;
  const seconds = await secondsUntilProved(db, period, asOf);
  const minute: Hindrance[] = seconds === null ? [] : [{ check: "minute", month, asOf, seconds }];
  const ofDays = [...differing].flatMap(([report, days]): Hindrance[] => {
    const { fromUtc, toUtc } = period;
    return days.length === 0 ? [] : [{ check: "days", month, report, days, fromUtc, toUtc }];
  });
  if (seconds !== null && ofDays.length === 0) return { month, verdicts: [], hindrances: minute };
  const openFindings = abouts[0]?.proof.openFindings ?? "0";
  const found = await unprovedHindrances(db, { period, asOf, openFindings });
  return { month, verdicts: verdictsOf(abouts), hindrances: [...found, ...ofDays, ...minute] };
}

/** Unread parts and findings, as far as they are known without the reports' rows. */
async function unprovedHindrances(
  db: Knex,
  { period, asOf, openFindings: open }: Pick<Unproved, "period" | "asOf"> & { openFindings: string },
): Promise<Hindrance[]> {
  const hindrances: Hindrance[] = [];
  const gaps = await unreadParts(db, period, asOf);
  for (const isHole of [false, true]) {
    const parts = gaps.filter((gap) => gap.isHole === isHole);
    if (parts.length > 0) hindrances.push({ check: "read", parts, isHole });
  }
  const unread = await unreadChanges(db, period, asOf);
  if (gaps.length === 0 && unread !== null) {
    hindrances.push({ check: "changes", since: unread.since });
  }
  if (open !== "0") {
    hindrances.push({ check: "findings", open, findings: await openFindings(db, period, asOf) });
  }
  return hindrances;
}

/**
 * The obstacles to closing a month as of `at` that can be found quickly: only the reports themselves compare the sums
 * of each day with the service's (`days`). Empty if there are none. A few statements.
 */
export async function findHindrances(db: Knex, month: string, period: Period, at: Date): Promise<Hindrance[]> {
  const first = await findHindrance(db, month, period, at);
  if (first !== null) return [first];
  const asOf = at.toISOString();
  const proof = await readProof(db, period, asOf);
  if (proof.verdict === "PASS") return [];
  const seconds = await secondsUntilProved(db, period, asOf);
  if (seconds !== null) return [{ check: "minute", month, asOf, seconds }];
  const { openFindings } = proof;
  const hindrances = await unprovedHindrances(db, { period, asOf, openFindings });
  if (hindrances.length > 0) return hindrances;
  return [{ check: "verdict", verdict: proof.verdict }];
}

/** The names of reports by verdict. */
function verdictsOf(abouts: readonly ReportFacts[]): CloseRefusal["verdicts"] {
  const verdicts = [...new Set(abouts.map(({ proof }) => proof.verdict))];
  return verdicts
    .filter((verdict) => verdict !== "PASS")
    .map((verdict) => {
      const those = abouts.filter(({ proof }) => proof.verdict === verdict);
      const isAll = those.length === abouts.length;
      return { verdict, reports: those.map(({ report }) => report), isAll };
    });
}

/**
 * Seconds until the records after the cut-off prove the month; null if waiting does not help, because the month is not
 * proved now either, or there are no such records.
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

/** The findings that block the period, the oldest first. One statement. */
async function openFindings(db: Knex, { toUtc, timeZone }: Period, asOf: string): Promise<OpenFinding[]> {
  const { rows } = await db.raw<{ rows: OpenFinding[] }>(
    `select f.finding,
            concat_ws(' ', f.severity, replace(f.class, '_', ' '), f.identity, f.resource, f.object_id) as about,
            to_char(f.first_seen at time zone ?, 'YYYY-MM-DD') as since
     from reports.open_findings(?, ?) f where f.is_serious
     order by f.first_seen, f.finding`,
    [timeZone, toUtc, asOf],
  );
  return rows;
}
