import type { Knex } from "knex";
import type { WeekOfDeclines } from "../../../../core/mirror/dunning/funnel.ts";

/**
 * The report dunning-funnel of the weeks from these Mondays on, in the order given. One statement a week, one after the
 * other, so that none runs into the time limit of a page.
 */
export async function declinesByWeek(
  db: Knex,
  { mondays, timeZone }: { mondays: readonly string[]; timeZone: string },
): Promise<WeekOfDeclines[]> {
  const weeks: WeekOfDeclines[] = [];
  for (const monday of mondays) {
    const { rows } = await db.raw<{ rows: { recovered: string; lost: string; in_progress: string }[] }>(
      `select coalesce(sum(recovered), 0)::text as recovered, coalesce(sum(lost), 0)::text as lost,
              coalesce(sum(in_progress), 0)::text as in_progress
       from reports.dunning_funnel(reports.day_start(?::date, ?), reports.day_start(?::date + 7, ?), ?)`,
      [monday, timeZone, monday, timeZone, timeZone],
    );
    const [found] = rows;
    weeks.push({
      monday,
      recovered: Number(found?.recovered ?? 0),
      inProgress: Number(found?.in_progress ?? 0),
      lost: Number(found?.lost ?? 0),
    });
  }
  return weeks;
}
