import type { Knex } from "knex";
import { tallyhook } from "../../../platform/command-line.ts";
import { moneyText } from "../../../platform/money.ts";
import { sqlArray } from "../../../platform/postgres/values.ts";
import { counted } from "../../../platform/readable-text.ts";
import type { AlertContext } from "../alert-context.ts";
import { keepsIncidents, listParts } from "../channels/channel-kinds.ts";
import { composeMessage, customerNames } from "../compose-message.ts";
import { type AlertFact, type AlertItem, type AlertSeverity, alertSeverities } from "../message.ts";
import { quietEnd } from "../outbox/announce.ts";
import { queueMessages } from "../outbox/outbox.ts";
import { clear, raise } from "../raise-conditions.ts";
import { type Part, byMoney, listTitle, sumTexts, sumsInTitle } from "../rules/wording.ts";
import type { End, Family } from "../condition.ts";
import type { Transition } from "../timeline.ts";
import { limitOf } from "./hold-back.ts";
import {
  type CountedAmountRow,
  type StormItemCount,
  countArrivals,
  countedAmount,
  countedAmountSql,
  digestTotals,
  isOfMoney,
  listCommand,
  stormCondition,
  stormFamilies,
  stormTotals,
} from "./storms.ts";

/** Alerts that are held back are listed after this time even if the storm continues. */
const maxHeldMinutes = 60;

interface Storm {
  id: number;
  family: Family;
  key: string;
  occurrence: number;
  isOpen: boolean;
  /** Since the storm was opened. */
  minutes: number;
}

/**
 * Lists what cannot wait, sends storms again that have doubled, and ends those that have passed: below half of what
 * opened them, so that a rate around the limit makes one incident and not many. With the end, everything that was held
 * back is listed. Needs a transaction; each alert is listed once.
 */
export async function reportStorms(trx: Knex.Transaction, alertContext: AlertContext): Promise<void> {
  const { withinMinutes } = alertContext.settings.rules.decline_storm;
  for (const storm of await stormsToReport(trx)) {
    const { family } = storm;
    const limit = await limitOf(trx, alertContext, family);
    const count = await countArrivals(trx, { family, withinMinutes }, limit + 1);
    const isOver = !storm.isOpen || count <= limit / 2;
    const at = alertContext.serviceClock.now();
    // Since the start of the window in which the storm was detected.
    const minutes = Math.ceil(storm.minutes) + withinMinutes;
    if (!isOver) {
      const totals = await stormTotals(trx, family, { learnedWithinMinutes: minutes });
      const count = { ...totals, minutes, limit, at };
      await raise(trx, alertContext, [stormCondition(alertContext.settings, family, count)], "sweep");
    }
    await tellLists(trx, alertContext, storm, isOver);
    if (!isOver || !storm.isOpen) continue;
    const span = { stormId: storm.id, learnedWithinMinutes: minutes };
    const counts = [...(await countItems(trx, storm.id)), ...(await digestTotals(trx, family, span))];
    const end = stormEnd(family, counts);
    await clear(trx, alertContext, [{ end, key: storm.key, at }], "sweep");
  }
}

/**
 * Open storms, and ended ones with alerts still to be listed, which a worker held back while the storm ended. Locks
 * them.
 */
async function stormsToReport(trx: Knex): Promise<Storm[]> {
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

interface Waiting extends ListedAlert {
  channel: string;
  cannotWait: boolean;
}

async function tellLists(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  storm: Storm,
  isOver: boolean,
): Promise<void> {
  const waiting = await takeWaiting(trx, storm, isOver);
  if (waiting.length === 0) return;
  const numbers = await listNumbers(trx, storm.id);
  const woken = await channelsTold(trx, storm.id);
  const at = alertContext.serviceClock.now();
  for (const channel of new Set(waiting.map((each) => each.channel))) {
    const kind = alertContext.settings.channels[channel]?.kind;
    let number = numbers.get(channel) ?? 0;
    for (const cannotWait of [true, false]) {
      const own = waiting.filter((each) => each.channel === channel && each.cannotWait === cannotWait);
      const parts = listParts(kind, inListOrder(own), listItem);
      for (const [n, alerts] of parts.entries()) {
        number++;
        const told = { alerts, part: n + 1, parts: parts.length, cannotWait, number, at };
        const stage = listTransition(storm.family, told);
        const { key, occurrence } = storm;
        const items = alerts.map(listItem);
        const message = composeMessage({ key, occurrence, channel, stage, items });
        // The list joins an incident that has already woken people. It must not open it again in the morning.
        const joins = keepsIncidents(kind) && woken.has(channel);
        const notBefore = joins ? null : quietEnd(alertContext, stage);
        await queueMessages(trx, [{ channel, alertId: storm.id, message, notBefore, isList: true }]);
      }
    }
  }
}

/**
 * The alerts to list now, each once. Alerts that were resolved while waiting are not listed but counted as over. Urgent
 * ones are still listed, with their outcome: fraud, a chargeback or a high amount is never only a number.
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
  const names = await customerNames(trx, [...new Set(rows.flatMap(({ customer_id: id }) => id ?? []))]);
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

/** The channels on which the incident itself was sent, or may have been. One statement. */
async function channelsTold(trx: Knex, stormId: number): Promise<ReadonlySet<string>> {
  const channels = await trx("alerts.outbox")
    .where({ alert_id: stormId, action: "trigger", is_list: false })
    .whereRaw("(state = 'sent' or maybe_sent)")
    .distinct()
    .pluck<string[]>("channel");
  return new Set(channels);
}

/** The number of lists of this storm that each channel got. One statement. */
async function listNumbers(trx: Knex, stormId: number): Promise<Map<string, number>> {
  const rows = await trx("alerts.outbox")
    .where({ alert_id: stormId, is_list: true })
    .groupBy("channel")
    .select<{ channel: string; n: string }[]>("channel", trx.raw("count(*) as n"));
  return new Map(rows.map(({ channel, n }) => [channel, Number(n)]));
}

/** Outcomes of a storm's alerts, each counted once by its last report. One statement. */
async function countItems(trx: Knex, stormId: number): Promise<StormItemCount[]> {
  type Row = CountedAmountRow & { told_how: StormItemCount["toldHow"] };
  const { rows } = await trx.raw<{ rows: Row[] }>(
    `select told_how, ${countedAmountSql} from (
       select distinct on (i.alert_id) i.told_how, a.currency, a.amount_minor
       from alerts.storm_items i join alerts.alerts a on a.id = i.alert_id
       where i.storm_id = ? order by i.alert_id, i.queued_at desc, i.told_at nulls last) each
     group by told_how, currency`,
    [stormId],
  );
  return rows.map(({ told_how: toldHow, ...row }) => ({ toldHow, ...countedAmount(row) }));
}

/** An alert that waits for a list of its storm. */
export interface ListedAlert {
  id: number;
  rule: string;
  severity: AlertSeverity;
  title: string;
  advice: string;
  /** Null where there is no amount. */
  amountMinor: bigint | null;
  currency: string | null;
  /** The alert's outcome while it waited for the list; null while it is open. */
  sinceThen: string | null;
  /** The masked address and the id; null where there is no customer. */
  customer: string | null;
}

/** An alert as a list shows it: the amount, the customer, and the number for `alerts show`. */
export function listItem({ id, title, sinceThen, amountMinor, currency, customer }: ListedAlert): AlertItem {
  return {
    title,
    facts: [
      ...(sinceThen === null ? [] : [{ label: "Outcome", value: sinceThen }]),
      ...(amountMinor === null ? [] : [{ label: "Amount", value: moneyText(amountMinor, currency) }]),
      ...(customer === null ? [] : [{ label: "Customer", value: customer }]),
      { label: "Alert", value: String(id) },
    ],
    alertId: id,
  };
}

/** Outcomes of alerts, by the transitions that end them. */
const endings: Readonly<Record<string, string>> = {
  recovered: "paid after all",
  canceled: "the subscription was canceled",
  voided: "the order was voided",
  accepted: "lost: the bank keeps the money",
  dismissed: "won: you keep the money",
};

/** A list's words for an alert that ended before it was listed. */
export const endingOf = (stage: string): string => endings[stage] ?? "over";

/** Open alerts first, then the most urgent, then by currency the largest amounts. */
const inListOrder = (alerts: readonly ListedAlert[]): ListedAlert[] =>
  [...alerts].sort(
    (a, b) =>
      Number(a.sinceThen !== null) - Number(b.sinceThen !== null) ||
      alertSeverities.indexOf(a.severity) - alertSeverities.indexOf(b.severity) ||
      byMoney(a, b) ||
      a.id - b.id,
  );

const moneyFacts = (sums: readonly string[]): AlertFact[] => sums.map((value) => ({ label: "Total", value }));

/** The number of alerts that need no more action. */
function overFacts(alerts: readonly ListedAlert[]): AlertFact[] {
  const over = alerts.filter(({ sinceThen }) => sinceThen !== null).length;
  return over === 0 ? [] : [{ label: "Already over, at the bottom", value: String(over) }];
}

export interface ListPart extends Part {
  alerts: readonly ListedAlert[];
  /** Whether they could not wait for the end of the storm. */
  cannotWait: boolean;
  /** The number of the list among those of its incident and channel. */
  number: number;
  at: Date;
}

/** The content of one message with a list. */
export function listTransition(family: Family, { alerts, part, parts, cannotWait, number, at }: ListPart): Transition {
  const sums = sumTexts(isOfMoney(family) ? alerts : []);
  const lead = sums.length === 0 ? "" : `${sumsInTitle(sums)} in `;
  const why = cannotWait ? "of a storm that cannot wait" : "that a storm held back";
  return {
    name: `list:${number}`,
    change: "updated",
    at,
    rule: stormFamilies[family].rule,
    severity: inListOrder(alerts)[0]?.severity ?? "warning",
    title: listTitle(`${lead}${counted(alerts.length, "alert")} ${why}`, { part, parts }),
    advice: adviceOn(alerts),
    facts: [...moneyFacts(sums), ...overFacts(alerts), ...countsByRule(alerts)],
    canWait: false,
  };
}

/** The advice itself where all alerts share it, else where to find it. */
function adviceOn(alerts: readonly ListedAlert[]): string {
  const all = new Set(alerts.map(({ advice }) => advice));
  const [common = ""] = all.size === 1 ? all : [];
  return `${common} Start at the top. "${tallyhook("alerts show NUMBER")}" says what to do about each.`.trim();
}

const countsByRule = (alerts: readonly ListedAlert[]): AlertFact[] => {
  const counts = new Map<string, number>();
  for (const { rule } of alerts) counts.set(rule, (counts.get(rule) ?? 0) + 1);
  return [...counts].map(([label, n]) => ({ label, value: String(n) }));
};

/** The place of a past storm's alerts. */
function whereTold(isListed: boolean, isInDigest: boolean): string {
  if (!isInDigest) {
    return isListed
      ? "The lists name each alert, the most urgent first."
      : "Each alert was sent by itself, or is over.";
  }
  const others = isListed ? "The lists name the others." : "The others were sent by themselves, or are over.";
  return `Alerts that can wait are on the daily list. ${others}`;
}

/** The end of a storm: how many alerts there were, what became of them, and their sums. */
export function stormEnd(family: Family, counts: readonly StormItemCount[]): End {
  const of = (...how: StormItemCount["toldHow"][]) => counts.filter(({ toldHow }) => how.includes(toldHow));
  const sum = (some: readonly StormItemCount[]) => some.reduce((all, { alerts }) => all + alerts, 0);
  const listed = of("at_once", "at_end");
  const sums = sumTexts(isOfMoney(family) ? of("alone", "at_once", "at_end", "in_digest") : []);
  const { end, holds } = stormFamilies[family];
  const inAll = sums.length === 0 ? "" : `, ${sumsInTitle(sums)} in total`;
  const facts: [string, number][] = [
    ["Sent by themselves at once", sum(of("alone"))],
    ["Listed at once", sum(of("at_once"))],
    ["Held back and listed", sum(of("at_end"))],
    ["Over before they were listed", sum(of("over"))],
    ["On the daily list", sum(of("in_digest"))],
  ];
  return {
    title: listed.length === 0 ? `${end}${inAll}` : `${end}: ${counted(sum(listed), "alert")} listed${inAll}`,
    advice: `${whereTold(listed.length > 0, of("in_digest").length > 0)} ` + `Still open: ${listCommand(holds)}.`,
    facts: [...moneyFacts(sums), ...facts.flatMap(([label, n]) => (n === 0 ? [] : [{ label, value: String(n) }]))],
  };
}
