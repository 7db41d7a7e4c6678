import type { Knex } from "knex";
import { zoneOf } from "./desk.ts";
import type { AlertDesk } from "./desk.ts";
import { readMark, writeMark } from "./marks.ts";

const hourMs = 3_600_000;
const markName = "usual-declines";

interface Mark {
  at: string;
  per_window: number | null;
}

/**
 * How many declines a window about this time usually brings, by the times of the charges; null until a day of them is
 * known. The largest of three: the mean of this hour (the hour before and the hour after taken in) over the days of the
 * baseline, and the fullest window about this time of day one week ago and one month ago, since renewals cluster on
 * weekdays and on days of the month: the last comparable billing day.
 */
export async function usualDeclines(db: Knex, desk: AlertDesk, at: Date): Promise<number | null> {
  const mark = await readMark<Mark>(db, markName);
  const isNear = mark !== null && Math.abs(Date.parse(mark.at) - at.getTime()) <= hourMs;
  return isNear ? mark.per_window : countUsual(db, desk, at);
}

/** Works it out for this hour, once an hour: what is declined now asks for it. Needs a transaction. */
export async function learnUsualDeclines(trx: Knex.Transaction, desk: AlertDesk): Promise<void> {
  const fresh = await trx("alerts.marks")
    .where("name", markName)
    .whereRaw("updated_at > now() - interval '1 hour'")
    .first("name");
  if (fresh !== undefined) return;
  const at = desk.serviceClock.now();
  const mark: Mark = { at: at.toISOString(), per_window: await countUsual(trx, desk, at) };
  await writeMark(trx, markName, mark);
}

/** One statement. */
async function countUsual(db: Knex, desk: AlertDesk, at: Date): Promise<number | null> {
  const { withinMinutes, baselineDays } = desk.settings.rules.decline_storm;
  const { rows } = await db.raw<{ rows: { usual: number | null }[] }>(
    `with asked as (
       select :at::timestamptz as at, make_interval(mins => :mins) as width, interval '90 minutes' as around
     ), attempts as not materialized (
       -- What the first import brought is a part of what there was, and says nothing of how much there is.
       select h.at from alerts.history h where starts_with(h.stage, 'attempt:') and h.found_by <> 'import'
     ), known as (
       select least(:days::float8, extract(epoch from asked.at - (select at from attempts order by at limit 1)) / 86400) as days
       from asked
     ), mean as (
       select count(*) / max(known.days) / (180.0 / :mins) as n
       from asked, known, generate_series(1, :days) as day
       join attempts a on a.at >= (select at - around from asked) - day * interval '1 day'
                      and a.at < (select at + around from asked) - day * interval '1 day'
       where known.days >= 1
     ), comparable as (
       select asked.at - interval '7 days' as at, asked.width, asked.around from asked
       union all
       select (asked.at at time zone :zone - interval '1 month') at time zone :zone, asked.width, asked.around from asked
     ), fullest as (
       select max(w.n) as n from comparable c cross join lateral (
         select count(*) over (order by a.at range between c.width preceding and current row) as n
         from attempts a where a.at >= c.at - c.around and a.at < c.at + c.around) w
     )
     select case when known.days >= 1 then greatest(mean.n, fullest.n, 0) end::float8 as usual from known, mean, fullest`,
    { at, mins: withinMinutes, days: baselineDays, zone: zoneOf(desk) },
  );
  return rows[0]?.usual ?? null;
}
