import type { Knex } from "knex";
import { durationText, withoutControls } from "../../../platform/readable-text.ts";
import { type AlertContext, wordingOf } from "../alert-context.ts";
import { clearOthers, raise } from "../raise-conditions.ts";
import type { Condition, End } from "../timeline.ts";
import { watchedSince } from "./watch-absence.ts";
import { type Wording, headlineText, shortened } from "./wording.ts";

/** A consumer of the feed, and when the oldest change that it has not read was recorded. */
export interface ConsumerBehind {
  name: string;
  position: number;
  movedAt: Date;
  unreadSince: Date;
}

/** What is asked of the feed. */
export interface FeedQuestions {
  feedConsumers(db: Knex): Promise<readonly (Omit<ConsumerBehind, "unreadSince"> & { unreadSince: Date | null })[]>;
  /** Which handler a consumer is: that is watched as such. Null for another reader; absent without handlers. */
  handlerOf?(consumer: string): string | null;
}

const hourMs = 3_600_000;
const keyPrefix = "feed-consumer:";

/** After a downtime of everything, consumers first catch up. */
const graceMs = 10 * 60_000;

/** Reports consumers of the feed that are far behind. Needs a transaction; idempotent. */
export async function watchConsumers(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  { feedConsumers, handlerOf = () => null }: FeedQuestions,
): Promise<void> {
  const at = alertContext.clock.now();
  const { afterHours } = alertContext.settings.rules.feed_consumer_behind;
  const consumers = await feedConsumers(trx);
  const behind = consumers.flatMap(({ unreadSince, ...consumer }) =>
    handlerOf(consumer.name) === null &&
    unreadSince !== null &&
    at.getTime() - unreadSince.getTime() > afterHours * hourMs
      ? [{ ...consumer, unreadSince }]
      : [],
  );
  const context = { ...wordingOf(alertContext), at };
  const conditions = behind.map((consumer) => consumerBehindCondition(consumer, context));
  const keep = conditions.map(({ key }) => key);
  const ended = { prefix: keyPrefix, keep, at, end: consumerBehindEnd };
  await clearOthers(trx, alertContext, ended, "sweep");
  const since = await watchedSince(trx);
  if (since === null || at.getTime() - since.getTime() < graceMs) return;
  await raise(trx, alertContext, conditions, "sweep");
}

/** A consumer has not read a change for long. Sent again each time its delay has doubled. */
export function consumerBehindCondition(
  { name, position, movedAt, unreadSince }: ConsumerBehind,
  { rules, localTime, shortTime, at }: Wording & { at: Date },
): Condition {
  const delayMs = at.getTime() - unreadSince.getTime();
  return {
    key: `${keyPrefix}${name}`,
    rule: "feed_consumer_behind",
    severity: rules.feed_consumer_behind.severity,
    title: headlineText({
      lead: `"${shortened(name)}" is ${durationText(delayMs)} behind in the feed of changes`,
      cause: `it last moved ${shortTime(movedAt)}`,
    }),
    advice:
      "Start the program that reads under this name, or look into its log: it does not run, or it fails at one change. " +
      "Nothing is lost: the feed keeps what it has not read, and grows until it has. If nobody needs the consumer any " +
      `more, remove it: "node src/bin/tallyhook.js changes consumers remove ${commandWord(name)}".`,
    facts: [
      { label: "Consumer", value: withoutControls(name) },
      { label: "Oldest unread change", value: localTime(unreadSince) },
      { label: "Read up to number", value: String(position) },
      { label: "Last moved", value: localTime(movedAt) },
    ],
    storedFacts: { consumer: name, position, unreadSince: unreadSince.toISOString() },
    measures: { hours: Math.floor(delayMs / hourMs) },
    at,
  };
}

/** One word of a command line. */
const commandWord = (name: string): string =>
  /^[\w.:@/-]+$/.test(name) ? name : `'${withoutControls(name).replaceAll("'", `'\\''`)}'`;

export const consumerBehindEnd = (name: string): End => ({
  title: headlineText({ lead: `"${shortened(name)}" has caught up with the feed, or was removed` }),
  advice: "It has read all changes but those of the last hour, or nothing is kept for it. Nothing is left to do.",
});
