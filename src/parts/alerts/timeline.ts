import { moneyText } from "../../platform/money.ts";
import type { FoundBy } from "./alert-context.ts";
import { type Begun, type End, type Family, type StoredFacts, atRisk } from "./condition.ts";
import type { AlertFact, AlertSeverity } from "./message.ts";
import type { Headline } from "./rules/wording.ts";
import type { RuleName } from "./settings.ts";

/** One transition of an alert, as the facts show it. */
export interface Transition {
  /** Unique in its timeline, and the same whenever the same facts are known: `attempt:2`, `final`, `recovered`. */
  name: string;
  change: "opened" | "updated" | "resolved";
  /** When it happened, at the service or here; never when it was recorded. */
  at: Date;
  rule: RuleName;
  severity: AlertSeverity;
  /** One line, without personal data and without ids. */
  title: string;
  /** The same title in parts. A message puts the customer between them. */
  headline?: Headline;
  advice: string;
  /** Only for the message. */
  facts: readonly AlertFact[];
  /** Whether it may wait for the next digest. */
  canWait: boolean;
  /** The earlier transition that made the same request. If the history has that one, this one is not announced. */
  repeats?: string;
  /**
   * Money or fraud that a storm does not hold back until its end. Without a storm it may still wait for a digest
   * (`canWait`).
   */
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

/**
 * All transitions of one alert that follow from the present knowledge, in any order of arrival. Later knowledge may
 * replace one: a canceled order turns out to be paid. The timeline of a condition also depends on earlier messages
 * (`conditionTimeline`).
 */
export interface Timeline {
  key: string;
  subject: Subject;
  amountMinor: bigint | null;
  currency: string | null;
  facts: StoredFacts;
  family: Family | null;
  /** In order; at least one. */
  stages: readonly [Transition, ...Transition[]];
}

/**
 * A timeline of events at the service. A repetition is another occurrence of its key, and so an alert of its own. Its
 * number is its place among all known ones, so it does not depend on the order of arrival either.
 */
export interface FactTimeline extends Timeline {
  /** From 1. */
  occurrence: number;
}

export const lastTransition = ({ stages }: Pick<Timeline, "stages">): Transition => stages.at(-1) ?? stages[0];

/** The last transition before the end: it describes the alert, even when it is over. */
export const lastActiveTransition = ({ stages }: Pick<Timeline, "stages">): Transition =>
  stages.findLast(({ change }) => change !== "resolved") ?? stages[0];

export interface StoredAlert {
  id: number;
  state: "open" | "acknowledged" | "resolved";
  /** Names of the transitions in its history. */
  stages: ReadonlySet<string>;
}

export interface PlannedChange {
  timeline: Timeline;
  /** The number of this alert among those of its key. */
  occurrence: number;
  /** Transitions that the history lacks. */
  newStages: readonly Transition[];
  /** The transition to send: the end of the timeline where that is new. */
  announced: Transition | null;
  /** It happened before the system stopped that this database replaces: that system sent its messages. */
  isTold?: boolean;
}

/**
 * Compares a timeline with its stored state. Only the newest transition is ever announced: an older one that arrives
 * late is superseded, so messages keep the order of the timeline in any order of arrival. Two things are never
 * announced: an alert that began and ended before it was recorded, and a transition that only repeats an earlier
 * request.
 */
export function planChange(timeline: Timeline, stored: StoredAlert | null, occurrence = 1): PlannedChange {
  const known = stored?.stages ?? new Set<string>();
  const newStages = timeline.stages.filter(({ name }) => !known.has(name));
  const last = lastTransition(timeline);
  const isRepeated = last.repeats !== undefined && known.has(last.repeats);
  const isOver = stored === null && last.change === "resolved";
  const isWorthAlert = !known.has(last.name) && !isRepeated && !isOver;
  return { timeline, occurrence, newStages, announced: isWorthAlert ? last : null };
}

const newsMs = 48 * 3_600_000;

/**
 * Whether a timeline that is not stored yet is worth an alert. An initial import brings years of history, of which only
 * unresolved alerts are worth one: those younger than 48 hours, chargebacks, and dunning with a known next retry.
 */
export function isNews(timeline: Timeline, foundBy: FoundBy, now: Date): boolean {
  if (foundBy !== "import") return true;
  const last = lastTransition(timeline);
  if (last.change === "resolved") return false;
  if (now.getTime() - last.at.getTime() < newsMs) return true;
  return (
    last.rule === "chargeback" ||
    (timeline.facts["next_retry_at"] !== null && timeline.facts["next_retry_at"] !== undefined)
  );
}

/** A state that is true now and will end. Each repetition is an alert of its own: an occurrence of the key. */
export interface Condition extends Begun {
  rule: RuleName;
  severity: AlertSeverity;
  subject?: Subject;
  at: Date;
}

/** The stored state of a condition that was already true. */
export interface KnownCondition {
  openedAt: Date;
  facts: Readonly<Record<string, unknown>>;
}

/** The timeline of a condition: its opening and, once it was due to be sent again, its latest growth. */
export function conditionTimeline(condition: Condition, known: KnownCondition | null): Timeline {
  const { key, storedFacts, subject = noSubject, measures = {}, family, ...rest } = condition;
  const { canWait = false, ...told } = rest;
  const growth = growthOf(measures, known?.facts ?? null);
  const stage = (name: string, change: "opened" | "updated", at: Date): Transition => {
    return { ...told, name, change, at, canWait };
  };
  return {
    key,
    subject,
    amountMinor: null,
    currency: null,
    facts: { ...storedFacts, ...growth.facts },
    family: family ?? null,
    stages: [
      stage("opened", "opened", known?.openedAt ?? condition.at),
      ...(growth.times === 0 ? [] : [stage(`grown:${growth.times}`, "updated", condition.at)]),
    ],
  };
}

/** The facts under these keys hold a measure as last sent, and at its highest. The names are stored, so they stay. */
const lastSentKey = (name: string): string => `told ${name}`;
const peakPrefix = "most ";
const peakKey = (name: string): string => `${peakPrefix}${name}`;

/**
 * The number of times that a condition was due to be sent again, and the values to store to detect the next time. It is
 * due when one of its measures is at least twice the last value sent, or has risen from zero; a jump to eight times as
 * much counts once.
 */
function growthOf(
  measures: Readonly<Record<string, number>>,
  known: KnownCondition["facts"] | null,
): { times: number; facts: Timeline["facts"] } {
  const before = (key: string): number | null => {
    const value = known?.[key];
    return typeof value === "number" ? value : null;
  };
  const all = Object.entries(measures);
  const hasDoubled = all.some(([name, now]) => now > 0 && now >= 2 * (before(lastSentKey(name)) ?? now));
  const times = (before("grown") ?? 0) + (known !== null && hasDoubled ? 1 : 0);
  const facts: Record<string, number> = times === 0 ? {} : { grown: times };
  for (const [name, now] of all) {
    const lastSent = before(lastSentKey(name));
    facts[lastSentKey(name)] = lastSent === null || hasDoubled ? Math.max(now, lastSent ?? 0) : lastSent;
    facts[peakKey(name)] = Math.max(now, before(peakKey(name)) ?? 0);
  }
  return { times, facts };
}

/** The highest measures of a condition, for the message about its end. */
export function peakFacts(facts: KnownCondition["facts"]): AlertFact[] {
  const peaks = Object.entries(facts).flatMap(([key, value]) =>
    key.startsWith(peakPrefix) && typeof value === "number" && value > 0
      ? [measureText(key.slice(peakPrefix.length), value)]
      : [],
  );
  return peaks.length === 0 ? [] : [{ label: "At its worst", value: peaks.join(", ") }];
}

const measureText = (name: string, value: number): string =>
  name.startsWith(atRisk) ? `${moneyText(value, name.slice(atRisk.length))} at risk` : `${value} ${name}`;

/** The last transition of a condition. */
export function endTransition(
  { rule, severity, facts }: EndedCondition,
  { title, advice, facts: more = [], canWait = false }: End,
  at: Date,
): Transition {
  return {
    name: "resolved",
    change: "resolved",
    at,
    rule,
    severity,
    title,
    advice,
    facts: [...peakFacts(facts), ...more],
    canWait,
  };
}

export interface EndedCondition {
  rule: RuleName;
  severity: AlertSeverity;
  facts: KnownCondition["facts"];
}
