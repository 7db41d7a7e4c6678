import { readHandlersHealth } from "../dispatch/handler-health.ts";
import type { HandlerHealth } from "../../../app/answers.ts";
import { counted, durationText, withoutControls } from "../../../platform/readable-text.ts";
import { shortenedTo } from "../../../platform/redaction.ts";
import type { Reason, Summary, SummaryCard } from "../../../app/dashboard/page-group.ts";
import { type RecipientKinds, type RecipientWords, countText, recipientWords } from "./recipient-words.ts";

const most = 1_000;
/** The default of the alert `handler_behind`. */
const lateMs = 3_600_000;

/** The home card of handlers and destinations. */
export const handlersSummary = (kinds: RecipientKinds): Summary => ({
  access: "status:read",
  async read({ db, clock }) {
    const healths = await readHandlersHealth(db, { most });
    const known = healths.flatMap((health) => {
      const words = recipientWords(health.name, kinds);
      return words === null ? [] : [{ health, words }];
    });
    return cardOf(known, clock.now());
  },
});

interface Known {
  health: HandlerHealth;
  words: RecipientWords;
}

export function cardOf(known: readonly Known[], now: Date): SummaryCard {
  const dead = known.reduce((sum, { health }) => sum + health.dead, 0);
  const paused = known.filter(({ health }) => health.pausedBy !== null);
  const reasons = known.flatMap((each) => reasonsOf(each, now));
  const isOn = `${known.length - paused.length} on`;
  const isBad = dead > 0 || paused.some(({ health }) => health.pausedBy !== "person");
  return {
    title: "Handlers",
    path: "/handlers",
    count: dead >= most ? null : dead,
    tone: isBad ? "bad" : reasons.length > 0 ? "warn" : "good",
    headline: dead > 0 ? `${countText(dead, most)} dead` : known.length === 0 ? "None" : isOn,
    facts: [
      ...(dead === 0 ? [] : [{ name: "Recipients", value: isOn }]),
      ...(paused.length === 0 ? [] : [{ name: "Paused", value: String(paused.length) }]),
    ],
    reasons,
  };
}

const pauses = {
  person: "is paused by a person",
  failures: "is paused, because it failed for all objects",
  subscriber: "is paused, because it wants nothing more",
} as const;

function reasonsOf({ health, words }: Known, now: Date): Reason[] {
  const { dead, pausedBy, unreadSince, nextDueAt } = health;
  const name = `The ${words.noun} ${shortenedTo(withoutControls(words.name), 80)}`;
  const oldest = [unreadSince, nextDueAt].flatMap((at) => at?.getTime() ?? []);
  const behindMs = now.getTime() - Math.min(...oldest);
  const texts = [
    ...(pausedBy === null ? [] : [`${name} ${pauses[pausedBy]}.`]),
    ...(dead === 0
      ? []
      : [
          `${name} has given up ${counted(countText(dead, most), words.item, words.items)}; later ones of the same objects wait.`,
        ]),
    ...(pausedBy === null && oldest.length > 0 && behindMs >= lateMs
      ? [`${name} is ${durationText(behindMs)} behind.`]
      : []),
  ];
  return texts.map((text) => ({ text, path: `/handlers/${encodeURIComponent(health.name)}`, next: "See it" }));
}
