import type { Knex } from "knex";
import { durationText } from "../platform/duration-text.ts";
import { composeMessage } from "./compose-message.ts";
import type { AlertDesk } from "./desk.ts";
import { customerFacts } from "./facts/customers.ts";
import { linksOf } from "./links.ts";
import {
  digestChannels,
  dropOvertaken,
  dropUnsent,
  stormListedChannels,
  queueForDigest,
  queueMessages,
  toldChannels,
} from "./outbox-rows.ts";
import type { DigestItem, OutboxRow } from "./outbox-rows.ts";
import { endRouteOf, keepsIncidents, quietEnd, routeOf } from "./route.ts";
import type { Stage, Story } from "./rules/story.ts";

/** A stage of a stored alert that somebody is to hear of. */
export interface Announcement {
  alertId: number;
  occurrence: number;
  openedAt: Date;
  story: Pick<Story, "key" | "subject" | "family">;
  stage: Stage;
}

/**
 * Puts what is to be said into the outbox or the digests: one message a channel and stage. An alert that is over is
 * told where it was told or listed before, and nowhere else; quiet hours do not hold it back where incidents are kept.
 * Needs the transaction of the change.
 */
export async function announce(
  trx: Knex,
  desk: AlertDesk,
  announcements: readonly Announcement[],
): Promise<void> {
  const ended = announcements.filter(({ stage }) => stage.change === "resolved");
  const begun = announcements.filter(({ stage }) => stage.change !== "resolved");
  if (ended.length > 0) await announceEnds(trx, desk, ended);
  if (begun.length > 0) await announceStages(trx, desk, begun);
}

async function announceEnds(
  trx: Knex,
  desk: AlertDesk,
  ended: readonly Announcement[],
): Promise<void> {
  const ids = ended.map(({ alertId }) => alertId);
  await dropUnsent(trx, ids);
  const told = await toldChannels(trx, ids);
  const onDigests = await digestChannels(trx, ids);
  const inStorms = await stormListedChannels(trx, ids);
  const routed = ended.map((one) => ({
    one,
    ...endRouteOf(desk, one.stage, {
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
        ...rowOf(withDuration(one), channel, customers, desk),
        notBefore: keepsIncidents(desk.settings, channel) ? null : quietEnd(desk, one.stage),
      })),
    ),
  );
}

/** What people hear at the end of an alert: also how long it lasted. */
function withDuration(one: Announcement): Announcement {
  const { stage, openedAt } = one;
  const lasted = { label: "Lasted", value: durationText(stage.at.getTime() - openedAt.getTime()) };
  return { ...one, stage: { ...stage, facts: [...stage.facts, lasted] } };
}

async function announceStages(
  trx: Knex,
  desk: AlertDesk,
  begun: readonly Announcement[],
): Promise<void> {
  const items: DigestItem[] = [];
  const single: Announcement[] = [];
  for (const one of begun) {
    const { channels, inDigest } = routeOf(desk, one.stage);
    if (!inDigest) single.push(one);
    else {
      for (const channel of channels) {
        items.push({ channel, alertId: one.alertId, stage: one.stage.name });
      }
    }
  }
  await queueForDigest(trx, items);
  if (single.length === 0) return;
  await dropOvertaken(
    trx,
    single.map(({ alertId, stage }) => ({ alertId, channels: routeOf(desk, stage).channels })),
  );
  const customers = await customersOf(trx, single);
  await queueMessages(
    trx,
    single.flatMap((one) =>
      routeOf(desk, one.stage).channels.map((channel) => rowOf(one, channel, customers, desk)),
    ),
  );
}

type Customers = Awaited<ReturnType<typeof customerFacts>>;

const customersOf = (trx: Knex, announced: readonly Announcement[]): Promise<Customers> => {
  const ids = announced.flatMap(({ story }) => story.subject.customerId ?? []);
  return customerFacts(trx, [...new Set(ids)]);
};

function rowOf(
  { alertId, occurrence, story, stage }: Announcement,
  channel: string,
  customers: Customers,
  desk: AlertDesk,
): OutboxRow {
  const { key, subject } = story;
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
      customer,
      links: linksOf(desk.settings.links, subject),
    }),
    notBefore: quietEnd(desk, stage),
  };
}
