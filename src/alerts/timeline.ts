import { moneyText } from "../platform/money.ts";
import type { FoundBy } from "./alert-context.ts";
import type { AlertFact, AlertSeverity } from "./message.ts";
import type { Headline } from "./rules/wording.ts";
import type { RuleName } from "./settings.ts";

/** One step in the life of an alert, as the facts tell it. */
export interface Stage {
  /** Unique in its story, and the same whenever the same facts are known: `attempt:2`, `final`, `recovered`. */
  name: string;
  change: "opened" | "updated" | "resolved";
  /** When it happened, at the service or here; never when it was learned. */
  at: Date;
  rule: RuleName;
  severity: AlertSeverity;
  /** One line, without personal data and without ids. */
  title: string;
  /** The same in its parts: in a message, the customer stands between them. */
  headline?: Headline;
  advice: string;
  /** For the message alone. */
  facts: readonly AlertFact[];
  /** Whether it may wait for the next digest. */
  canWait: boolean;
  /** The earlier stage that asked the same: whoever was told of that one is not told of this one. */
  repeats?: string;
  /** Money or fraud that somebody has to see at once: a storm does not hold it back. */
  evenInStorm?: boolean;
}

export interface Subject {
  orderId: string | null;
  subscriptionId: string | null;
  transactionId: string | null;
  customerId: string | null;
}

export const noSubject: Subject = {
  orderId: null,
  subscriptionId: null,
  transactionId: null,
  customerId: null,
};

/** Alerts of one family that come in crowds are told as one incident (hold-back.ts). */
export type Family =
  | "declines"
  | "late-declines"
  | "dead"
  | "chargebacks"
  | "new-values"
  | "card-numbers"
  | "undescribed";

/**
 * The whole life of one alert so far: a function of what is known, never of the order in which it was learned. What is
 * learned later adds stages, and takes none away.
 */
export interface Timeline {
  key: string;
  subject: Subject;
  amountMinor: bigint | null;
  currency: string | null;
  /** Kept with the alert: nothing that tells who somebody is. */
  facts: Readonly<Record<string, string | number | boolean | null>>;
  family: Family | null;
  /** In the order of the story; at least one. */
  stages: readonly [Stage, ...Stage[]];
}

export const lastStage = ({ stages }: Pick<Timeline, "stages">): Stage =>
  stages.at(-1) ?? stages[0];

/** The stage that says what the alert is about, also when it is over. */
export const gravestStage = ({ stages }: Pick<Timeline, "stages">): Stage =>
  stages.findLast(({ change }) => change !== "resolved") ?? stages[0];

export interface StoredAlert {
  id: number;
  state: "open" | "acknowledged" | "resolved";
  /** Names of the stages that its history has. */
  stages: ReadonlySet<string>;
}

export interface PlannedChange {
  timeline: Timeline;
  /** Which of the alerts of its key. */
  occurrence: number;
  /** Stages that the history lacks. */
  newStages: readonly Stage[];
  /** What is to be said: the end of the story where that is new. */
  announced: Stage | null;
}

/**
 * Holds a story against what is stored of it. Only the newest stage is ever announced: what is learned late has been
 * overtaken, so that what is sent is a part of the ordered story whatever the order of arrival. What began and ended
 * before it was learned is never announced, nor what asks only what an earlier stage has asked. Pure.
 */
export function planChange(
  timeline: Timeline,
  stored: StoredAlert | null,
  occurrence = 1,
): PlannedChange {
  const known = stored?.stages ?? new Set<string>();
  const newStages = timeline.stages.filter(({ name }) => !known.has(name));
  const last = lastStage(timeline);
  const isAsked = last.repeats !== undefined && known.has(last.repeats);
  const isOver = stored === null && last.change === "resolved";
  const isNews = !known.has(last.name) && !isAsked && !isOver;
  return { timeline, occurrence, newStages, announced: isNews ? last : null };
}

const newsMs = 48 * 3_600_000;

/**
 * Whether a story that nobody was told is worth an alert. A first fill brings years of history: of that only what is
 * younger than 48 hours, open chargebacks, and dunning that still goes on. Pure.
 */
export function isNews(timeline: Timeline, foundBy: FoundBy, now: Date): boolean {
  if (foundBy !== "import") return true;
  const last = lastStage(timeline);
  if (last.change === "resolved") return false;
  if (now.getTime() - last.at.getTime() < newsMs) return true;
  return (
    last.rule === "chargeback" ||
    (timeline.facts["next_retry_at"] !== null && timeline.facts["next_retry_at"] !== undefined)
  );
}

/** Something that is so now, and will one day no longer be: each time is an alert of its own, an occurrence of the key. */
export interface Condition {
  key: string;
  rule: RuleName;
  severity: AlertSeverity;
  title: string;
  advice: string;
  facts: readonly AlertFact[];
  kept?: Timeline["facts"];
  subject?: Subject;
  /** Counts, and minor units by currency, by which it grows: it is told again each time that one has doubled. */
  measures?: Readonly<Record<string, number>>;
  family?: Family;
  at: Date;
}

/** What is stored of a condition that was so before. */
export interface KnownCondition {
  openedAt: Date;
  facts: Readonly<Record<string, unknown>>;
}

/** The story of a condition: it was opened, and has doubled so many times since. Pure. */
export function conditionTimeline(condition: Condition, known: KnownCondition | null): Timeline {
  const { key, kept, subject = noSubject, measures = {}, family, ...told } = condition;
  const growth = growthOf(measures, known?.facts ?? null);
  const stage = (name: string, change: "opened" | "updated", at: Date): Stage => {
    return { ...told, name, change, at, canWait: false };
  };
  return {
    key,
    subject,
    amountMinor: null,
    currency: null,
    facts: { ...kept, ...growth.facts },
    family: family ?? null,
    stages: [
      stage("opened", "opened", known?.openedAt ?? condition.at),
      ...(growth.times === 0 ? [] : [stage(`grown:${growth.times}`, "updated", condition.at)]),
    ],
  };
}

/** How a measure was when it was told last, and at its highest, among the facts of an alert. */
const toldKey = (name: string): string => `told ${name}`;
const mostKey = (name: string): string => `most ${name}`;

/** How often a condition has doubled in one of its measures, and what is kept to see the next time. Pure. */
function growthOf(
  measures: Readonly<Record<string, number>>,
  known: KnownCondition["facts"] | null,
): { times: number; facts: Timeline["facts"] } {
  const before = (key: string): number | null => {
    const value = known?.[key];
    return typeof value === "number" ? value : null;
  };
  const all = Object.entries(measures);
  const hasDoubled = all.some(
    ([name, now]) => now > 0 && now >= 2 * (before(toldKey(name)) ?? now),
  );
  const times = (before("grown") ?? 0) + (known !== null && hasDoubled ? 1 : 0);
  const facts: Record<string, number> = times === 0 ? {} : { grown: times };
  for (const [name, now] of all) {
    const told = before(toldKey(name));
    facts[toldKey(name)] = told === null || hasDoubled ? Math.max(now, told ?? 0) : told;
    facts[mostKey(name)] = Math.max(now, before(mostKey(name)) ?? 0);
  }
  return { times, facts };
}

const atRisk = "minor units at risk in ";

/** The measure of an amount at risk. */
export const atRiskIn = (currency: string): string => `${atRisk}${currency}`;

/** How high the measures of a condition rose, for the message that it is over. Pure. */
export function worstOf(facts: KnownCondition["facts"]): AlertFact[] {
  const worst = Object.entries(facts).flatMap(([key, value]) =>
    key.startsWith("most ") && typeof value === "number" && value > 0
      ? [measureText(key.slice("most ".length), value)]
      : [],
  );
  return worst.length === 0 ? [] : [{ label: "At its worst", value: worst.join(", ") }];
}

const measureText = (name: string, value: number): string =>
  name.startsWith(atRisk)
    ? `${moneyText(value, name.slice(atRisk.length))} at risk`
    : `${value} ${name}`;

/** What is said when a condition is over: that it is, and what matters now. */
export interface End {
  title: string;
  advice: string;
  facts?: readonly AlertFact[];
}

/** The last stage of a condition. Pure. */
export function endStage(
  { rule, severity, facts }: EndedCondition,
  { title, advice, facts: more = [] }: End,
  at: Date,
): Stage {
  return {
    name: "resolved",
    change: "resolved",
    at,
    rule,
    severity,
    title,
    advice,
    facts: [...worstOf(facts), ...more],
    canWait: false,
  };
}

export interface EndedCondition {
  rule: RuleName;
  severity: AlertSeverity;
  /** What is stored of it. */
  facts: KnownCondition["facts"];
}
