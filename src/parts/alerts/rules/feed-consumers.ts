import type { Answers } from "../../../app/answers.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { durationText, withoutControls } from "../../../platform/readable-text.ts";
import { count } from "../setting-schemas.ts";
import { watch } from "../watch.ts";
import { headlineText, shortened } from "./wording.ts";

const hourMs = 3_600_000;
const keyPrefix = "feed-consumer:";

/** A consumer has not read a change for long. Sent again each time its delay has doubled. */
export const feedConsumerBehind = watch({
  rule: "feed_consumer_behind",
  about: 'A consumer of the feed of changes has not read a change for "afterHours" hours.',
  severity: "error",
  settings: { afterHours: count(1, 240, 1) },
  // After a total downtime, consumers first catch up.
  graceMs: 10 * 60_000,
  read: async (db, _context, { feedConsumers, handlerOf = () => null }: Pick<Answers, "feedConsumers" | "handlerOf">) =>
    (await feedConsumers?.(db))?.filter(({ name }) => handlerOf(name) === null) ?? null,
  begins: (consumers, { settings, localTime, shortTime, at }) =>
    consumers.map(({ name, position, movedAt, unreadSince }) => {
      const delayMs = unreadSince === null ? 0 : at.getTime() - unreadSince.getTime();
      if (unreadSince === null || delayMs <= settings.afterHours * hourMs) return null;
      return {
        key: `${keyPrefix}${name}`,
        title: headlineText({
          lead: `"${shortened(name)}" is ${durationText(delayMs)} behind in the feed of changes`,
          cause: `it last moved ${shortTime(movedAt)}`,
        }),
        advice:
          "Start the program that reads under this name, or read its log: it does not run, or it fails at one " +
          "change. Nothing is lost: the feed keeps what it has not read, and grows until it has. If the consumer is " +
          `no longer needed, remove it: "${tallyhook(`changes consumers remove ${commandWord(name)}`)}".`,
        facts: [
          { label: "Consumer", value: withoutControls(name) },
          { label: "Oldest unread change", value: localTime(unreadSince) },
          { label: "Read up to number", value: String(position) },
          { label: "Last moved", value: localTime(movedAt) },
        ],
        storedFacts: { consumer: name, position, unreadSince: unreadSince.toISOString() },
        measures: { hours: Math.floor(delayMs / hourMs) },
      };
    }),
  end: (key) => ({
    title: headlineText({
      lead: `"${shortened(key.slice(keyPrefix.length))}" has caught up with the feed, or was removed`,
    }),
    advice: "It has read all changes but those of the last hour, or nothing is kept for it. Nothing is left to do.",
  }),
  samples: ({ at }) => {
    const before = (hours: number) => new Date(at.getTime() - hours * hourMs);
    const moved = { movedAt: before(3), createdAt: before(2_000), unreadSince: before(2) };
    const consumer = { name: "shop.receipts", position: 4_711, ...moved };
    return { "a consumer of the feed behind": [consumer] };
  },
});

/** One word of a command line. */
const commandWord = (name: string): string =>
  /^[\w.:@/-]+$/.test(name) ? name : `'${withoutControls(name).replaceAll("'", `'\\''`)}'`;
