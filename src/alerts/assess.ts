import type { Knex } from "knex";
import { sqlArray } from "../platform/sql-array.ts";
import { reportCardNumbers } from "./card-numbers.ts";
import type { MaskedObject } from "./card-numbers.ts";
import { wordingOf } from "./desk.ts";
import type { AlertDesk, FoundBy } from "./desk.ts";
import { findChargebacks } from "./facts/chargebacks.ts";
import { findDeclinedOrders } from "./facts/declined-orders.ts";
import { storedSubjects } from "./facts/stored-subjects.ts";
import { planChange } from "./plan-changes.ts";
import { chargebackStory } from "./rules/chargebacks.ts";
import { declineStory } from "./rules/declines.ts";
import { mergedOrders } from "./rules/merged-orders.ts";
import { isNews } from "./rules/news.ts";
import type { Story } from "./rules/story.ts";
import { reportNovelties } from "./novelties.ts";
import { newestAlerts } from "./stored-alerts.ts";
import { touchedBy } from "./touched.ts";
import type { Touched, WrittenState } from "./touched.ts";
import { writeStories } from "./write-stories.ts";

/** What a transaction should order to be read, since alerts lack it. */
export interface MissingFact {
  resource: "subscription";
  id: string;
}

export type AssessedState = WrittenState & { maskedCardNumbers: MaskedObject | null };

/**
 * Holds the alerts of everything that was written against what is known of it now, and writes the difference: alerts,
 * their histories, and what is to be sent. What is stored in the end depends on the set of known states alone, not on
 * their order. Needs the transaction that wrote the states, after it wrote them; called through `withIsolatedAlerts`, so
 * that its failure is not theirs. Idempotent. Costs a look at the states and one small query where nothing concerns an
 * alert.
 */
export async function assess(
  trx: Knex.Transaction,
  desk: AlertDesk,
  states: readonly AssessedState[],
  foundBy: FoundBy,
): Promise<MissingFact[]> {
  if (states.length === 0) return [];
  const masked = states.flatMap(({ maskedCardNumbers }) => maskedCardNumbers ?? []);
  await reportCardNumbers(trx, desk, masked, foundBy);
  return assessTouched(trx, desk, touchedBy(states), foundBy);
}

/** The same of what a transaction touched, from what is known of it now. Needs a transaction; idempotent. */
export async function assessTouched(
  trx: Knex.Transaction,
  desk: AlertDesk,
  touched: Touched,
  foundBy: FoundBy,
): Promise<MissingFact[]> {
  await reportNovelties(trx, desk, touched.novelties, foundBy);
  const telling = [...touched.declinedOrders, ...touched.disputed, ...touched.unsettled];
  await takeTurns(trx, telling);
  // Only now: what another worker stored of them meanwhile has to be found.
  const stored = await storedSubjects(trx, touched);
  const orders = [...new Set([...touched.declinedOrders, ...stored.declinedOrders])].sort();
  const disputed = [...new Set([...touched.disputed, ...stored.disputed])].sort();
  if (orders.length + disputed.length === 0) return [];
  const isHeld = new Set(telling);
  await takeTurns(
    trx,
    [...orders, ...disputed].filter((id) => !isHeld.has(id)),
  );

  const wording = wordingOf(desk);
  const isAsked = new Set(orders);
  const declined = mergedOrders(await findDeclinedOrders(trx, orders));
  const chargebacks = await findChargebacks(trx, disputed);
  const declines = declined.flatMap((order) => {
    const story = declineStory(order, wording);
    return story === null ? [] : [{ order, story }];
  });
  // Other cycles came along to be merged: what is told of one is no news of another.
  const concerned = declines.filter(({ order }) => order.ids.some((id) => isAsked.has(id)));
  const stories = [
    ...concerned.map(({ story }) => story),
    ...chargebacks.map((chargeback) => chargebackStory(chargeback, wording)),
  ];
  await writeAll(trx, desk, stories, foundBy);
  return concerned.flatMap(({ order, story }): MissingFact[] => {
    // Asked for by what the order itself shows, and not again when the answer comes.
    const isSeen = order.ids.some((id) => touched.failedOrders.has(id));
    const isUnknown = story.facts["retry_is_unknown"] === true;
    return isSeen && isUnknown && order.subscriptionId !== null
      ? [{ resource: "subscription", id: order.subscriptionId }]
      : [];
  });
}

async function writeAll(
  trx: Knex.Transaction,
  desk: AlertDesk,
  stories: readonly Story[],
  foundBy: FoundBy,
): Promise<void> {
  const known = await newestAlerts(
    trx,
    stories.map(({ key }) => key),
  );
  const now = desk.serviceClock.now();
  const planned = stories
    .filter((story) => known.has(story.key) || isNews(story, foundBy, now))
    .map((story) => planChange(story, known.get(story.key) ?? null));
  await writeStories(trx, desk, planned, foundBy);
}

/**
 * Whoever assesses the same order, or the same subscription, at the same time waits, and then sees what the other wrote.
 * An order is locked by its own id too: the other may not know its subscription yet. Some thousand locks for all
 * subjects: a batch needs no more of them. One statement.
 */
async function takeTurns(trx: Knex.Transaction, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await trx.raw(
    `select pg_advisory_xact_lock(7255, n) from (
       select distinct hashtext(subject.id) & 1023 as n
       from unnest(?::text[]) as asked(id)
       left join mirror.orders o on o.id = asked.id
       left join mirror.transactions t on t.id = asked.id
       left join mirror.orders paid on paid.id = t.order_id
       cross join lateral (
         values (asked.id), (o.subscription_id), (t.order_id), (paid.subscription_id)) as subject(id)
       where subject.id is not null order by 1 offset 0) turns`,
    [sqlArray(ids)],
  );
}
