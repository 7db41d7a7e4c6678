import type { AlertFact, AlertSeverity } from "../message.ts";
import { moneyText } from "../../platform/money.ts";
import type { RuleName } from "../settings.ts";
import { noSubject } from "./story.ts";
import type { Family, Stage, Story, Subject } from "./story.ts";

/** Something that is so now, and will one day no longer be: each time is an alert of its own, an occurrence of the key. */
export interface Condition {
  key: string;
  rule: RuleName;
  severity: AlertSeverity;
  title: string;
  advice: string;
  facts: readonly AlertFact[];
  kept?: Story["facts"];
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
export function conditionStory(condition: Condition, known: KnownCondition | null): Story {
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
): { times: number; facts: Story["facts"] } {
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
