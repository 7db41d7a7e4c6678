import type { Knex } from "knex";
import { sqlArray } from "../../../platform/postgres/values.ts";
import type { AlertContext } from "../alert-context.ts";
import { type Announcement, announce, routeOf } from "../outbox/announce.ts";
import { dropSuperseded } from "../outbox/outbox.ts";
import { newestAlerts, writeAlerts, writeHistory } from "../store.ts";
import type { Family } from "../condition.ts";
import { conditionTimeline, planChange } from "../timeline.ts";
import {
  type StormTotals,
  countArrivals,
  fullestWindow,
  stormCondition,
  stormTotals,
  usualDeclines,
  usualLimit,
} from "./storms.ts";

/**
 * Alerts that a storm does not hold back get messages of their own, up to this number in a window. More come as lists
 * with the next sweep.
 */
const maxAlone = 20;

/**
 * Removes the announcements that a storm holds back, and opens the one incident that represents them all. No alert is
 * lost: one that cannot wait gets its own message or goes into the next list, and the others go into the list at the
 * end of the storm (list-storms.ts). Ends are announced as usual, since a resolution goes only where the alert was
 * sent. Alerts that wait for a digest do not count as messages. Two workers may both let a few messages pass before
 * either sees the storm; the incident is still one, by its key.
 */
export async function holdBack(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  announcements: readonly Announcement[],
): Promise<readonly Announcement[]> {
  const families = new Set(announcements.flatMap(({ timeline }) => timeline.family ?? []));
  const held = new Set<Announcement>();
  // In a fixed order, since each family locks its incident.
  for (const family of [...families].sort()) {
    const fresh = announcements.filter(
      ({ timeline, stage }) => timeline.family === family && stage.change !== "resolved",
    );
    if (fresh.length === 0) continue;
    const stormId = await stormOf(trx, alertContext, family, fresh);
    if (stormId === null) continue;
    for (const one of await keepForLists(trx, alertContext, stormId, fresh)) held.add(one);
  }
  return announcements.filter((one) => !held.has(one));
}

/** The incident of these alerts, opened if necessary; null where there is no storm. */
async function stormOf(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  family: Family,
  fresh: readonly Announcement[],
): Promise<number | null> {
  if (family !== "declines") {
    return (await openStorm(trx, family)) ?? (await openForArrivals(trx, alertContext, family, fresh));
  }
  if (!alertContext.settings.rules.decline_storm.enabled) return null;
  return (
    (await openStorm(trx, family)) ??
    (await openForRate(trx, alertContext, fresh)) ??
    (await openStorm(trx, "late-declines")) ??
    (await openForArrivals(trx, alertContext, "late-declines", fresh))
  );
}

/** Opens a storm for declines at a multiple of their usual rate, by the times of the charges. */
async function openForRate(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  fresh: readonly Announcement[],
): Promise<number | null> {
  const { withinMinutes, atLeast } = alertContext.settings.rules.decline_storm;
  const window = { family: "declines", withinMinutes } as const;
  const peak = await fullestWindow(
    trx,
    window,
    fresh.map(({ stage }) => stage.at),
  );
  if (peak === null || peak.count <= atLeast) return null;
  const limit = usualLimit(alertContext.settings, "declines", await usualDeclines(trx, alertContext, peak.at));
  if (peak.count <= limit) return null;
  const span = { chargedUntil: peak.at, withinMinutes };
  const totals = await stormTotals(trx, "declines", span);
  return openIncident(trx, alertContext, "declines", { totals, limit });
}

/** Opens a storm when more alerts of a family than its limit came within the window. */
async function openForArrivals(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  family: Family,
  fresh: readonly Announcement[],
): Promise<number | null> {
  const { withinMinutes } = alertContext.settings.rules.decline_storm;
  const limit = await limitOf(trx, alertContext, family);
  const isLate = family === "late-declines";
  // Alerts that are not in their digest yet.
  const coming = isLate ? fresh.filter(({ stage }) => routeOf(alertContext, stage).inDigest).length : 0;
  const count = await countArrivals(trx, { family, withinMinutes }, limit + coming + 1);
  if (count - coming <= limit) return null;
  const totals = await stormTotals(trx, family, { learnedWithinMinutes: withinMinutes });
  return openIncident(trx, alertContext, family, { totals, limit });
}

/** The number of alerts of a family that are sent individually in a window. */
export async function limitOf(db: Knex, alertContext: AlertContext, family: Family): Promise<number> {
  const isByRate = family === "declines" || family === "late-declines";
  const usual = isByRate ? await usualDeclines(db, alertContext, alertContext.serviceClock.now()) : null;
  return usualLimit(alertContext.settings, family, usual);
}

async function openIncident(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  family: Family,
  { totals, limit }: { totals: StormTotals; limit: number },
): Promise<number> {
  await trx.raw("select pg_advisory_xact_lock(7255, hashtext(?))", [family]);
  const open = await openStorm(trx, family);
  if (open !== null) return open;
  const { withinMinutes: minutes } = alertContext.settings.rules.decline_storm;
  const at = alertContext.serviceClock.now();
  const count = { ...totals, minutes, limit, at };
  const condition = stormCondition(alertContext.settings, family, count);
  const timeline = conditionTimeline(condition, null);
  const last = (await newestAlerts(trx, [timeline.key])).get(timeline.key);
  const change = planChange(timeline, null, (last?.occurrence ?? 0) + 1);
  const [alertId] = (await writeAlerts(trx, [change], "event")).values();
  if (alertId === undefined) throw new TypeError("an incident was not written");
  const [stage] = timeline.stages;
  const { name, at: openedAt } = stage;
  await writeHistory(trx, [{ alertId, change: "opened", stage: name, at: openedAt }], "event");
  const { occurrence } = change;
  await announce(trx, alertContext, [{ alertId, occurrence, openedAt, timeline, stage }]);
  return alertId;
}

/**
 * The open incident of a family, locked so that it cannot end before this transaction does; null where none is open.
 */
async function openStorm(trx: Knex.Transaction, family: Family): Promise<number | null> {
  const row = await trx("alerts.alerts")
    .where("key", `storm:${family}`)
    .whereNot("state", "resolved")
    .forShare()
    .first<{ id: string } | undefined>("id");
  return row === undefined ? null : Number(row.id);
}

/**
 * Records how each alert is reported: by a message of its own or in which list. Returns those without a message of
 * their own.
 */
async function keepForLists(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  stormId: number,
  fresh: readonly Announcement[],
): Promise<Announcement[]> {
  let left = maxAlone - (await countAlone(trx, alertContext, stormId));
  const urgent = await urgentlyWaiting(
    trx,
    fresh.map(({ alertId }) => alertId),
  );
  const items = fresh.flatMap((one): StormItem[] => {
    const { channels, inDigest } = routeOf(alertContext, one.stage);
    const cannotWait = one.stage.evenInStorm === true;
    if (inDigest && !cannotWait) return [];
    const isAlone = cannotWait && !inDigest && left-- > 0;
    // An alert that could not wait still cannot when a later transition replaces the first.
    const isUrgent = cannotWait || urgent.has(one.alertId);
    const toldHow = isAlone ? "alone" : isUrgent ? "at_once" : "at_end";
    return [{ one, channels, toldHow }];
  });
  const held = items.flatMap(({ one, toldHow }) => (toldHow === "alone" ? [] : [one]));
  await dropSuperseded(
    trx,
    items.flatMap(({ one: { alertId }, channels, toldHow }) => (toldHow === "alone" ? [] : [{ alertId, channels }])),
  );
  await writeItems(trx, stormId, items);
  return held;
}

/** Which of these alerts wait for a list that must not wait for the end of their storm. One statement. */
async function urgentlyWaiting(trx: Knex, ids: readonly number[]): Promise<ReadonlySet<number>> {
  const waiting = await trx("alerts.storm_items")
    .whereIn("alert_id", [...ids])
    .where("told_how", "at_once")
    .whereNull("told_at")
    .distinct()
    .pluck<string[]>("alert_id");
  return new Set(waiting.map(Number));
}

interface StormItem {
  one: Announcement;
  channels: readonly string[];
  toldHow: "alone" | "at_once" | "at_end";
}

/** The number of a storm's alerts that got messages of their own in the last window. One statement. */
async function countAlone(trx: Knex, alertContext: AlertContext, stormId: number): Promise<number> {
  const { withinMinutes } = alertContext.settings.rules.decline_storm;
  const { rows } = await trx.raw<{ rows: { n: string }[] }>(
    `select count(distinct alert_id) as n from alerts.storm_items
     where storm_id = ? and told_how = 'alone' and queued_at > now() - make_interval(mins => ?)`,
    [stormId, withinMinutes],
  );
  return Number(rows[0]?.n);
}

/** One statement; idempotent. */
async function writeItems(trx: Knex, stormId: number, items: readonly StormItem[]): Promise<void> {
  const rows = items.flatMap(({ one, channels, toldHow }) =>
    channels.map((channel) => ({ channel, toldHow, id: one.alertId, stage: one.stage.name })),
  );
  if (rows.length === 0) return;
  await trx.raw(
    `insert into alerts.storm_items (storm_id, channel, alert_id, stage, told_how, told_at)
     select ?, channel, alert_id, stage, told_how, case when told_how = 'alone' then now() end
     from unnest(?::text[], ?::bigint[], ?::text[], ?::text[])
       as g(channel, alert_id, stage, told_how)
     on conflict do nothing`,
    [
      stormId,
      sqlArray(rows.map(({ channel }) => channel)),
      sqlArray(rows.map(({ id }) => id)),
      sqlArray(rows.map(({ stage }) => stage)),
      sqlArray(rows.map(({ toldHow }) => toldHow)),
    ],
  );
}
