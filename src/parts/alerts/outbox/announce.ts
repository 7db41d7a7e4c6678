import type { Knex } from "knex";
import { type LocalMinute, type LocalTime, localTimeIn, instantsOf, timeText } from "../../../platform/local-time.ts";
import { durationText } from "../../../platform/readable-text.ts";
import { type AlertContext, zoneOf } from "../alert-context.ts";
import { keepsIncidents } from "../channels/channel-kinds.ts";
import { composeMessage, customerFacts, linksOf, noticedText, pageLink } from "../compose-message.ts";
import type { AlertSettings } from "../settings.ts";
import type { Transition, Timeline } from "../timeline.ts";
import {
  type DigestItem,
  type OutboxRow,
  digestChannels,
  dropSuperseded,
  dropUnsent,
  queueForDigest,
  queueMessages,
  stormListedChannels,
  sentChannels,
} from "./outbox.ts";

/** A transition of a stored alert that may need messages. */
export interface Announcement {
  alertId: number;
  occurrence: number;
  openedAt: Date;
  timeline: Pick<Timeline, "key" | "subject" | "family">;
  stage: Transition;
}

/**
 * Puts messages into the outbox or the digests: one for each channel and transition. The end of an alert goes only to
 * the channels that got the alert or listed it. Quiet hours do not delay it on channels that keep incidents.
 * Needs the transaction of the change.
 */
export async function announce(
  trx: Knex,
  alertContext: AlertContext,
  announcements: readonly Announcement[],
): Promise<void> {
  const ended = announcements.filter(({ stage }) => stage.change === "resolved");
  const begun = announcements.filter(({ stage }) => stage.change !== "resolved");
  if (ended.length > 0) await announceEnds(trx, alertContext, ended);
  if (begun.length > 0) await announceStages(trx, alertContext, begun);
}

async function announceEnds(trx: Knex, alertContext: AlertContext, ended: readonly Announcement[]): Promise<void> {
  const ids = ended.map(({ alertId }) => alertId);
  await dropUnsent(trx, ids);
  const told = await sentChannels(trx, ids);
  const onDigests = await digestChannels(trx, ids);
  const inStorms = await stormListedChannels(trx, ids);
  const routed = ended.map((one) => ({
    one,
    ...endRouteOf(alertContext, one.stage, {
      told: told.get(one.alertId) ?? [],
      listed: [...(onDigests.get(one.alertId) ?? []), ...(inStorms.get(one.alertId) ?? [])],
    }),
  }));
  await queueForDigest(
    trx,
    routed.flatMap(({ one: { alertId, stage }, inDigest }) =>
      inDigest.map((channel) => ({ channel, alertId, stage: stage.name })),
    ),
  );
  const heard = routed.filter(({ atOnce }) => atOnce.length > 0);
  const customers = await customersOf(
    trx,
    heard.map(({ one }) => one),
  );
  await queueMessages(
    trx,
    heard.flatMap(({ one, atOnce }) =>
      atOnce.map((channel) => ({
        ...rowOf(withDuration(one), channel, customers, alertContext),
        notBefore: keepsIncidents(alertContext.settings.channels[channel]?.kind)
          ? null
          : quietEnd(alertContext, one.stage),
      })),
    ),
  );
}

/** Adds to the end of an alert how long it lasted. */
function withDuration(one: Announcement): Announcement {
  const { stage, openedAt } = one;
  const lasted = { label: "Lasted", value: durationText(stage.at.getTime() - openedAt.getTime()) };
  return { ...one, stage: { ...stage, facts: [...stage.facts, lasted] } };
}

async function announceStages(trx: Knex, alertContext: AlertContext, begun: readonly Announcement[]): Promise<void> {
  const items: DigestItem[] = [];
  const single: Announcement[] = [];
  for (const one of begun) {
    const { channels, inDigest } = routeOf(alertContext, one.stage);
    if (!inDigest) single.push(one);
    else {
      for (const channel of channels) {
        items.push({ channel, alertId: one.alertId, stage: one.stage.name });
      }
    }
  }
  await queueForDigest(trx, items);
  if (single.length === 0) return;
  await dropSuperseded(
    trx,
    single.map(({ alertId, stage }) => ({
      alertId,
      channels: routeOf(alertContext, stage).channels,
    })),
  );
  const customers = await customersOf(trx, single);
  await queueMessages(
    trx,
    single.flatMap((one) =>
      routeOf(alertContext, one.stage).channels.map((channel) => rowOf(one, channel, customers, alertContext)),
    ),
  );
}

type Customers = Awaited<ReturnType<typeof customerFacts>>;

const customersOf = (trx: Knex, announced: readonly Announcement[]): Promise<Customers> => {
  const ids = announced.flatMap(({ timeline }) => timeline.subject.customerId ?? []);
  return customerFacts(trx, [...new Set(ids)]);
};

function rowOf(
  { alertId, occurrence, openedAt, timeline, stage }: Announcement,
  channel: string,
  customers: Customers,
  alertContext: AlertContext,
): OutboxRow {
  const { key, subject } = timeline;
  const customer = customers.get(subject.customerId ?? "") ?? null;
  return {
    channel,
    alertId,
    message: composeMessage({
      key,
      occurrence,
      channel,
      stage,
      alertId,
      noticed: noticedText(alertContext, stage, openedAt),
      customer,
      links: [...pageLink(alertContext, alertId), ...linksOf(alertContext.settings.links, subject)],
    }),
    notBefore: quietEnd(alertContext, stage),
  };
}

/** The channels and the time of a transition's message. */
export interface Route {
  channels: readonly string[];
  /** Goes into the next digest instead of a message of its own. */
  inDigest: boolean;
  /** Not before this time; null: immediately. */
  notBefore: Date | null;
}

/** The route of a transition: the channels of its rule, delayed in quiet hours, in a digest where it can wait. */
export function routeOf(
  { settings, ...alertContext }: AlertContext,
  stage: Pick<Transition, "rule" | "severity" | "canWait">,
): Route {
  const rule = settings.rules[stage.rule];
  const own = rule.channels ?? settings.defaultChannels;
  if (!rule.enabled) return { channels: [], inDigest: false, notBefore: null };
  if (stage.canWait && settings.digests.when !== "off") {
    return { channels: settings.digests.channels ?? own, inDigest: true, notBefore: null };
  }
  return {
    channels: own,
    inDigest: false,
    notBefore: quietEnd({ settings, ...alertContext }, stage),
  };
}

/**
 * The route of an alert's end: immediately where people got a message about the alert; in the next digest where it was
 * listed in one, or where waiting does no harm.
 */
function endRouteOf(
  { settings }: Pick<AlertContext, "settings">,
  stage: Pick<Transition, "canWait">,
  { told, listed }: { told: readonly string[]; listed: readonly string[] },
): { atOnce: readonly string[]; inDigest: readonly string[] } {
  const mayWait = stage.canWait && settings.digests.when !== "off";
  const atOnce = told.filter((channel) => !mayWait || keepsIncidents(settings.channels[channel]?.kind));
  const others = [...told, ...listed].filter((channel) => !atOnce.includes(channel));
  return { atOnce, inDigest: [...new Set(others)] };
}

/** The end of quiet hours for messages that are not urgent enough to break them; null: send now. */
export function quietEnd(alertContext: AlertContext, { severity }: Pick<Transition, "severity">): Date | null {
  const { quietHours } = alertContext.settings;
  if (quietHours === null || quietHours.except.includes(severity)) return null;
  return quietUntil(quietHours, zoneOf(alertContext), alertContext.clock.now());
}

type QuietHours = NonNullable<AlertSettings["quietHours"]>;

const weekdays = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] as const;

/** Until when messages that are not urgent wait; null where they are sent now. */
export function quietUntil(quiet: QuietHours | null, timeZone: string, now: Date): Date | null {
  if (quiet === null) return null;
  const local = localTimeIn(timeZone)(now);
  const began = beganOn(timeText(local), local.weekday, quiet);
  if (began === null || !quiet.days.some((day) => day === weekdays[began])) return null;
  const ends = [0, 1].flatMap((days) => instantsOf(onDay(quiet.to, local, days), timeZone));
  return ends.find((end) => end > now) ?? null;
}

/** The last time, at or before `now`, that the clock in the zone showed `timeOfDay` (`08:00`): once a day. */
export function lastTimeOfDay(timeOfDay: string, timeZone: string, now: Date): Date {
  const local = localTimeIn(timeZone)(now);
  const [today = now] = instantsOf(onDay(timeOfDay, local, 0), timeZone);
  const [yesterday = now] = instantsOf(onDay(timeOfDay, local, -1), timeZone);
  return today <= now ? today : yesterday;
}

const onDay = (timeOfDay: string, { year, month, day }: LocalTime, daysLater: number): LocalMinute => {
  const [hour, minute] = [Number(timeOfDay.slice(0, 2)), Number(timeOfDay.slice(3))];
  return { year, month, day: day + daysLater, hour, minute };
};

/** The weekday on which the quiet hours around a time of day began; null outside quiet hours. */
function beganOn(time: string, weekday: number, { from, to }: QuietHours): number | null {
  if (from <= to) return time >= from && time < to ? weekday : null;
  if (time >= from) return weekday;
  return time < to ? (weekday + 6) % 7 : null;
}
