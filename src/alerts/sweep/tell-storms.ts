import type { Knex } from "knex";
import { sqlArray } from "../../platform/sql-array.ts";
import { listParts } from "../channels/list-parts.ts";
import { composeMessage } from "../compose-message.ts";
import { clear, raise } from "../conditions.ts";
import type { AlertDesk } from "../desk.ts";
import { customerNames } from "../facts/customers.ts";
import type { AlertSeverity } from "../message.ts";
import { queueMessages } from "../outbox-rows.ts";
import { keepsIncidents, quietEnd } from "../route.ts";
import { stormFamilies } from "../rules/storm-families.ts";
import { endingOf, inListOrder, listItem, listStage, stormEnd } from "../rules/storm-lists.ts";
import type { ListedAlert } from "../rules/storm-lists.ts";
import { stormCondition } from "../rules/storms.ts";
import type { StormItemCount } from "../rules/storms.ts";
import type { Family } from "../rules/story.ts";
import { limitOf } from "../storm.ts";
import { countArrivals, digestTotals, stormTotals } from "../storm-counts.ts";

/** What is held back is listed after so long, though the storm goes on. */
const maxHeldMinutes = 60;

interface Storm {
  id: number;
  family: Family;
  key: string;
  occurrence: number;
  isOpen: boolean;
  /** Since it was opened. */
  minutes: number;
}

/**
 * Lists what cannot wait, tells storms again that have doubled, and ends those whose crowd has passed: below half of what
 * opened them, so that a rate about the limit is one incident and not many. With the end, all that was held back is
 * listed. Needs a transaction; each alert is listed once.
 */
export async function tellStorms(trx: Knex.Transaction, desk: AlertDesk): Promise<void> {
  const { withinMinutes } = desk.settings.rules.decline_storm;
  for (const storm of await toldStorms(trx)) {
    const { family } = storm;
    const limit = await limitOf(trx, desk, family);
    const count = await countArrivals(trx, { family, withinMinutes }, limit + 1);
    const isOver = !storm.isOpen || count <= limit / 2;
    if (!isOver) await tellGrowth(trx, desk, storm, limit);
    await tellLists(trx, desk, storm, isOver);
    if (!isOver || !storm.isOpen) continue;
    const span = { stormId: storm.id, learnedWithinMinutes: minutesOf(desk, storm) };
    const counts = [
      ...(await countItems(trx, storm.id)),
      ...(await digestTotals(trx, family, span)),
    ];
    const end = stormEnd(family, counts);
    await clear(trx, desk, [{ end, key: storm.key, at: desk.serviceClock.now() }], "sweep");
  }
}

/** Storms that go on, and those of which a worker held something back while they ended. Locks them. */
async function toldStorms(trx: Knex): Promise<Storm[]> {
  const families = Object.keys(stormFamilies) as Family[];
  const { rows } = await trx.raw<{
    rows: { id: string; key: string; occurrence: number; state: string; minutes: number }[];
  }>(
    `select a.id, a.key, a.occurrence, a.state, extract(epoch from now() - a.created_at)::float8 / 60 as minutes
     from alerts.alerts a
     where a.key = any(?::text[]) and (a.state <> 'resolved' or exists (
       select from alerts.storm_items i where i.storm_id = a.id and i.told_at is null and i.told_how <> 'over'))
     order by a.key, a.id for update of a`,
    [sqlArray(families.map((family) => `storm:${family}`))],
  );
  return rows.flatMap(({ id, key, occurrence, state, minutes }) => {
    const family = families.find((each) => key === `storm:${each}`);
    return family === undefined
      ? []
      : [{ id: Number(id), family, key, occurrence, isOpen: state !== "resolved", minutes }];
  });
}

/** Since the window in which it was seen began. */
const minutesOf = (desk: AlertDesk, { minutes }: Storm): number =>
  Math.ceil(minutes) + desk.settings.rules.decline_storm.withinMinutes;

async function tellGrowth(
  trx: Knex.Transaction,
  desk: AlertDesk,
  storm: Storm,
  limit: number,
): Promise<void> {
  const { family } = storm;
  const minutes = minutesOf(desk, storm);
  const totals = await stormTotals(trx, family, { learnedWithinMinutes: minutes });
  const at = desk.serviceClock.now();
  const condition = stormCondition(desk.settings, family, { ...totals, minutes, limit, at });
  await raise(trx, desk, [condition], "sweep");
}

interface Waiting extends ListedAlert {
  channel: string;
  cannotWait: boolean;
}

async function tellLists(
  trx: Knex.Transaction,
  desk: AlertDesk,
  storm: Storm,
  isOver: boolean,
): Promise<void> {
  const waiting = await takeWaiting(trx, storm, isOver);
  if (waiting.length === 0) return;
  const numbers = await listNumbers(trx, storm.id);
  const woken = await channelsTold(trx, storm.id);
  const at = desk.serviceClock.now();
  for (const channel of new Set(waiting.map((each) => each.channel))) {
    const kind = desk.settings.channels[channel]?.kind;
    let number = numbers.get(channel) ?? 0;
    for (const cannotWait of [true, false]) {
      const own = waiting.filter(
        (each) => each.channel === channel && each.cannotWait === cannotWait,
      );
      const parts = listParts(kind, inListOrder(own), listItem);
      for (const [n, alerts] of parts.entries()) {
        number++;
        const told = { alerts, part: n + 1, parts: parts.length, cannotWait, number, at };
        const stage = listStage(storm.family, told);
        const { key, occurrence } = storm;
        const items = alerts.map(listItem);
        const message = composeMessage({ key, occurrence, channel, stage, items });
        // It joins an incident that has woken people, and must not open it again in the morning.
        const joins = keepsIncidents(desk.settings, channel) && woken.has(channel);
        const notBefore = joins ? null : quietEnd(desk, stage);
        await queueMessages(trx, [
          { channel, alertId: storm.id, message, notBefore, isList: true },
        ]);
      }
    }
  }
}

/**
 * What is to be listed now, each once. What was resolved while it waited is not listed, and counted as over; but what
 * could not wait is listed with what has become of it: fraud, a chargeback or a high amount is never only a number.
 */
async function takeWaiting(trx: Knex, storm: Storm, isOver: boolean): Promise<Waiting[]> {
  const { rows } = await trx.raw<{
    rows: {
      channel: string;
      told_how: string;
      id: string;
      rule: string;
      severity: AlertSeverity;
      amount_minor: string | null;
      currency: string | null;
      customer_id: string | null;
      facts: { title?: string; advice?: string };
      ended: string | null;
    }[];
  }>(
    `with due as (
       select i.channel, i.alert_id, i.stage, a.state = 'resolved' and i.told_how <> 'at_once' as is_over
       from alerts.storm_items i join alerts.alerts a on a.id = i.alert_id
       where i.storm_id = :id and i.told_at is null and i.told_how <> 'over'
         and (:isOver or i.told_how = 'at_once' or exists (
           select from alerts.storm_items old
           where old.storm_id = :id and old.told_at is null and old.told_how = 'at_end'
             and old.queued_at < now() - make_interval(mins => :mins)))
       for update of i
     ), taken as (
       update alerts.storm_items i
       set told_how = case when due.is_over then 'over' else i.told_how end,
           told_at = case when due.is_over then null else now() end
       from due where i.channel = due.channel and i.alert_id = due.alert_id and i.stage = due.stage
       returning i.channel, i.alert_id, i.told_how
     )
     select t.channel, t.told_how, a.id, a.rule, a.severity, a.amount_minor, a.currency, a.customer_id, a.facts,
            case when a.state = 'resolved' then a.stage end as ended
     from taken t join alerts.alerts a on a.id = t.alert_id
     where t.told_how <> 'over' order by t.channel, a.id`,
    { id: storm.id, isOver, mins: maxHeldMinutes },
  );
  const names = await customerNames(trx, [
    ...new Set(rows.flatMap(({ customer_id: id }) => id ?? [])),
  ]);
  return rows.map(({ channel, told_how: toldHow, id, rule, severity, facts, ...row }) => ({
    channel,
    advice: facts.advice ?? "",
    cannotWait: toldHow === "at_once",
    id: Number(id),
    rule,
    severity,
    title: facts.title ?? `Alert ${id}`,
    amountMinor: row.amount_minor === null ? null : BigInt(row.amount_minor),
    currency: row.currency,
    sinceThen: row.ended === null ? null : endingOf(row.ended),
    customer: row.customer_id === null ? null : (names.get(row.customer_id) ?? row.customer_id),
  }));
}

/** Where the incident itself was told, or may have been. One statement. */
async function channelsTold(trx: Knex, stormId: number): Promise<ReadonlySet<string>> {
  const channels = await trx("alerts.outbox")
    .where({ alert_id: stormId, action: "trigger", is_list: false })
    .whereRaw("(state = 'sent' or maybe_sent)")
    .distinct()
    .pluck<string[]>("channel");
  return new Set(channels);
}

/** How many lists of this storm each channel has had. One statement. */
async function listNumbers(trx: Knex, stormId: number): Promise<Map<string, number>> {
  const rows = await trx("alerts.outbox")
    .where({ alert_id: stormId, is_list: true })
    .groupBy("channel")
    .select<{ channel: string; n: string }[]>("channel", trx.raw("count(*) as n"));
  return new Map(rows.map(({ channel, n }) => [channel, Number(n)]));
}

/** What became of a storm's alerts, each counted once by its last telling. One statement. */
async function countItems(trx: Knex, stormId: number): Promise<StormItemCount[]> {
  const { rows } = await trx.raw<{
    rows: {
      told_how: StormItemCount["toldHow"];
      n: string;
      currency: string | null;
      sum: string | null;
    }[];
  }>(
    `select told_how, currency, count(*) as n, sum(amount_minor) as sum from (
       select distinct on (i.alert_id) i.told_how, a.currency, a.amount_minor
       from alerts.storm_items i join alerts.alerts a on a.id = i.alert_id
       where i.storm_id = ? order by i.alert_id, i.queued_at desc, i.told_at nulls last) each
     group by told_how, currency`,
    [stormId],
  );
  return rows.map(({ told_how: toldHow, n, currency, sum }) => {
    return { toldHow, alerts: Number(n), currency, amountMinor: sum === null ? null : BigInt(sum) };
  });
}
