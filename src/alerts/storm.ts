import type { Knex } from "knex";
import { announce } from "./announce.ts";
import type { Announcement } from "./announce.ts";
import type { AlertDesk } from "./desk.ts";
import { readMark } from "./marks.ts";
import { planChange } from "./plan-changes.ts";
import { stormStory, usualLimit } from "./rules/storms.ts";
import { stormFamilies } from "./rules/storm-families.ts";
import type { Family } from "./rules/story.ts";
import { newestAlerts, writeAlerts, writeHistory } from "./stored-alerts.ts";

/**
 * Takes out of the announcements what belongs to a storm, and opens the one incident that stands for it. What ends is
 * told as ever: a resolution goes only where the alert was told. Two workers may both let a few pass before either sees
 * the crowd; the incident is one, by its key.
 */
export async function holdBack(
  trx: Knex.Transaction,
  desk: AlertDesk,
  announcements: readonly Announcement[],
): Promise<readonly Announcement[]> {
  let kept = announcements;
  for (const family of new Set(announcements.flatMap(({ story }) => story.family ?? []))) {
    const fresh = kept.filter(
      ({ story, stage }) => story.family === family && stage.change !== "resolved",
    );
    if (fresh.length === 0 || !(await isStorm(trx, desk, family))) continue;
    kept = kept.filter((one) => !fresh.includes(one));
  }
  return kept;
}

async function isStorm(trx: Knex.Transaction, desk: AlertDesk, family: Family): Promise<boolean> {
  if (family === "declines" && !desk.settings.rules.decline_storm.enabled) return false;
  if (await hasOpenIncident(trx, family)) return true;
  const { withinMinutes } = desk.settings.rules.decline_storm;
  const limit = usualLimit(desk.settings, family, await usualDeclines(trx));
  if (!(await isOver(trx, { family, withinMinutes, limit }))) return false;
  await openIncident(trx, desk, family, limit);
  return true;
}

async function openIncident(
  trx: Knex.Transaction,
  desk: AlertDesk,
  family: Family,
  limit: number,
): Promise<void> {
  await trx.raw("select pg_advisory_xact_lock(7255, hashtext(?))", [family]);
  if (await hasOpenIncident(trx, family)) return;
  const { withinMinutes } = desk.settings.rules.decline_storm;
  const counted = await countRecent(trx, { family, withinMinutes });
  const story = stormStory(desk.settings, family, {
    ...counted,
    limit,
    withinMinutes,
    at: desk.serviceClock.now(),
  });
  const last = (await newestAlerts(trx, [story.key])).get(story.key);
  const change = planChange(story, null, (last?.occurrence ?? 0) + 1);
  const alertId = (await writeAlerts(trx, [change], "event")).get(story.key);
  if (alertId === undefined) throw new TypeError("an incident was not written");
  const [stage] = story.stages;
  await writeHistory(
    trx,
    [{ alertId, change: "opened", stage: stage.name, at: stage.at }],
    "event",
  );
  await announce(trx, desk, [
    { alertId, occurrence: change.occurrence, openedAt: stage.at, story, stage },
  ]);
}

async function hasOpenIncident(trx: Knex, family: Family): Promise<boolean> {
  const row = await trx("alerts.alerts")
    .where("key", `storm:${family}`)
    .whereNot("state", "resolved")
    .first("id");
  return row !== undefined;
}

/** How many declines come in a window as a rule; null until a day of them is known (sweep/end-storms.ts). */
export async function usualDeclines(db: Knex): Promise<number | null> {
  return (await readMark<{ per_window: number | null }>(db, "usual-declines"))?.per_window ?? null;
}

interface Window {
  family: Family;
  withinMinutes: number;
}

const recent = `
  from alerts.history h join alerts.alerts a on a.id = h.alert_id
  where h.recorded_at > now() - make_interval(mins => ?) and starts_with(h.stage, ?)
    and exists (select from unnest(?::text[]) p where starts_with(a.key, p))`;

const bindingsOf = ({ family, withinMinutes }: Window): (string | number | string[])[] => [
  withinMinutes,
  stormFamilies[family].stages,
  [...stormFamilies[family].keys],
];

/** Whether more alerts than the limit came in the window; counts no further than that. */
async function isOver(trx: Knex, window: Window & { limit: number }): Promise<boolean> {
  const { rows } = await trx.raw<{ rows: { n: string }[] }>(
    `select count(*) as n from (select 1 ${recent} limit ?) few`,
    [...bindingsOf(window), window.limit + 1],
  );
  return Number(rows[0]?.n) > window.limit;
}

/** How many alerts of a family changed in the window, and by which failure codes. */
export async function countRecent(
  db: Knex,
  window: Window,
): Promise<{ count: number; codes: Record<string, number> }> {
  const { rows } = await db.raw<{ rows: { code: string | null; n: string }[] }>(
    `select a.facts->>'failure_code' as code, count(*) as n ${recent} group by 1 order by 2 desc, 1 limit 50`,
    bindingsOf(window),
  );
  const hasCodes = rows.some(({ code }) => code !== null);
  const codes = Object.fromEntries(
    hasCodes ? rows.map(({ code, n }) => [code ?? "no code", Number(n)]) : [],
  );
  return { count: rows.reduce((all, { n }) => all + Number(n), 0), codes };
}
