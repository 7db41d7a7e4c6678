import type { Knex } from "knex";
import { sqlArray } from "../platform/sql-array.ts";
import { stormFamilies } from "./rules/storm-families.ts";
import type { StormItemCount, StormTotals } from "./rules/storms.ts";
import type { Family } from "./rules/story.ts";

interface Window {
  family: Family;
  withinMinutes: number;
}

const ofFamily = `
  starts_with(h.stage, :stages) and exists (select from unnest(:keys::text[]) p where starts_with(a.key, p))`;

const familyBindings = (family: Family): { stages: string; keys: string[] } => ({
  stages: stormFamilies[family].stages,
  keys: [...stormFamilies[family].keys],
});

/**
 * How many alerts of a family came in the window, by when they were learned; counts no further than `limit`. Of a family
 * that is there to keep messages few, what goes into a digest does not count. One statement.
 */
export async function countArrivals(
  db: Knex,
  { family, withinMinutes }: Window,
  limit: number,
): Promise<number> {
  const { rows } = await db.raw<{ rows: { n: string }[] }>(
    `select count(*) as n from (
       select 1 from alerts.history h join alerts.alerts a on a.id = h.alert_id
       where h.recorded_at > now() - make_interval(mins => :withinMinutes) and ${ofFamily}
         and (:countsDigests or not exists (
           select from alerts.digest_items d where d.alert_id = h.alert_id and d.stage = h.stage))
       limit :limit) few`,
    {
      ...familyBindings(family),
      withinMinutes,
      limit,
      countsDigests: family !== "late-declines",
    },
  );
  return Number(rows[0]?.n);
}

export interface Peak {
  count: number;
  /** The end of the window in which so many were declined. */
  at: Date;
}

/**
 * The fullest window about these times, by the times of the charges: declines that are delivered together but were made
 * hours apart are no attack. Null where there are none. One statement.
 */
export async function fullestWindow(
  db: Knex,
  { family, withinMinutes }: Window,
  times: readonly Date[],
): Promise<Peak | null> {
  const widthMs = withinMinutes * 60_000;
  const windows = [...new Set(times.map((at) => Math.floor(at.getTime() / widthMs)))];
  const { rows } = await db.raw<{ rows: { n: string; at: Date }[] }>(
    `select w.n, w.at from unnest(?::timestamptz[]) as start
     cross join lateral (
       select h.at, count(*) over (order by h.at range between make_interval(mins => ?) preceding and current row) as n
       from alerts.history h
       where h.at >= start - make_interval(mins => ?) and h.at < start + make_interval(mins => ?)
         and starts_with(h.stage, ?)) w
     order by w.n desc, w.at limit 1`,
    [
      sqlArray(windows.map((n) => new Date(n * widthMs).toISOString())),
      withinMinutes,
      withinMinutes,
      2 * withinMinutes,
      stormFamilies[family].stages,
    ],
  );
  const [row] = rows;
  return row === undefined ? null : { count: Number(row.n), at: row.at };
}

/**
 * What a crowd comes to: all of the family that was learned so many minutes ago at most, or charged in the window that
 * ends then.
 * One statement.
 */
export async function stormTotals(
  db: Knex,
  family: Family,
  span: { learnedWithinMinutes: number } | { chargedUntil: Date; withinMinutes: number },
): Promise<StormTotals> {
  const isLearned = "learnedWithinMinutes" in span;
  const { rows } = await db.raw<{
    rows: { currency: string | null; code: string | null; n: string; sum: string | null }[];
  }>(
    `select currency, code, count(*) as n, sum(amount_minor) as sum from (
       select distinct a.id, a.currency, a.amount_minor, a.facts->>'failure_code' as code
       from alerts.history h join alerts.alerts a on a.id = h.alert_id
       where ${isLearned ? "h.recorded_at > now() - make_interval(secs => :seconds)" : "h.at >= :from and h.at <= :to"} and ${ofFamily}) each
     group by currency, code order by n desc, code, currency`,
    {
      ...familyBindings(family),
      ...(isLearned
        ? { seconds: span.learnedWithinMinutes * 60 }
        : {
            from: new Date(span.chargedUntil.getTime() - span.withinMinutes * 60_000),
            to: span.chargedUntil,
          }),
    },
  );
  const codes: Record<string, number> = {};
  for (const { code, n } of rows) {
    if (code !== null) codes[code] = (codes[code] ?? 0) + Number(n);
  }
  return {
    alerts: rows.reduce((all, { n }) => all + Number(n), 0),
    sums: rows.map(({ currency, n, sum }) => {
      return { currency, amountMinor: sum === null ? null : BigInt(sum), alerts: Number(n) };
    }),
    codes,
  };
}

/** What of a storm no message of it tells, since it can wait for a digest: by currency. One statement. */
export async function digestTotals(
  db: Knex,
  family: Family,
  { stormId, learnedWithinMinutes }: { stormId: number; learnedWithinMinutes: number },
): Promise<StormItemCount[]> {
  const { rows } = await db.raw<{
    rows: { currency: string | null; n: string; sum: string | null }[];
  }>(
    `select currency, count(*) as n, sum(amount_minor) as sum from (
       select distinct a.id, a.currency, a.amount_minor
       from alerts.history h join alerts.alerts a on a.id = h.alert_id
       where h.recorded_at > now() - make_interval(mins => :minutes) and ${ofFamily}
         and exists (select from alerts.digest_items d where d.alert_id = h.alert_id and d.stage = h.stage)
         and not exists (select from alerts.storm_items i where i.storm_id = :stormId and i.alert_id = h.alert_id)) each
     group by currency`,
    { ...familyBindings(family), minutes: learnedWithinMinutes, stormId },
  );
  return rows.map(({ currency, n, sum }) => ({
    toldHow: "in_digest",
    alerts: Number(n),
    currency,
    amountMinor: sum === null ? null : BigInt(sum),
  }));
}
