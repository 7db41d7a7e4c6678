import { alertSeverities } from "../message.ts";
import type { AlertFact, AlertItem, AlertSeverity } from "../message.ts";
import { moneyText } from "../../platform/money.ts";
import { stormFamilies } from "./storm-families.ts";
import type { Family, Stage } from "./story.ts";

/** An alert that waits for a list of its storm. */
export interface ListedAlert {
  id: number;
  rule: string;
  severity: AlertSeverity;
  title: string;
  advice: string;
  /** Null where it is about no money. */
  amountMinor: number | null;
  currency: string | null;
  /** The masked address and the id; null where it is about nobody. */
  customer: string | null;
}

/** An alert as a list shows it: how much, who, and the number by which a person looks it up. Pure. */
export function listItem({ id, title, amountMinor, currency, customer }: ListedAlert): AlertItem {
  return {
    title,
    facts: [
      ...(amountMinor === null || currency === null
        ? []
        : [{ label: "Amount", value: moneyText(amountMinor, currency) }]),
      ...(customer === null ? [] : [{ label: "Customer", value: customer }]),
      { label: "Alert", value: String(id) },
    ],
    alertId: id,
  };
}

/** The most urgent first, then the largest amounts. Pure. */
export const inListOrder = (alerts: readonly ListedAlert[]): ListedAlert[] =>
  [...alerts].sort(
    (a, b) =>
      alertSeverities.indexOf(a.severity) - alertSeverities.indexOf(b.severity) ||
      (b.amountMinor ?? 0) - (a.amountMinor ?? 0) ||
      a.id - b.id,
  );

/** Sums in words, the largest first; currencies are never added. Pure. */
function moneyOf(alerts: readonly Pick<ListedAlert, "amountMinor" | "currency">[]): AlertFact[] {
  const sums = new Map<string, number>();
  for (const { amountMinor, currency } of alerts) {
    if (amountMinor === null || currency === null) continue;
    sums.set(currency, (sums.get(currency) ?? 0) + amountMinor);
  }
  return [...sums]
    .sort(([, a], [, b]) => b - a)
    .map(([currency, sum]) => ({ label: "Money", value: moneyText(sum, currency) }));
}

/** So many currencies fit in a title. */
const maxSumsInTitle = 3;

const sumText = (money: readonly AlertFact[]): string =>
  money
    .slice(0, maxSumsInTitle)
    .map(({ value }) => value)
    .join(", ");

export interface ListPart {
  /** Of this message and its others. */
  alerts: readonly ListedAlert[];
  part: number;
  parts: number;
  /** Whether they could not wait for the end of the storm. */
  cannotWait: boolean;
  /** The list's number among those of its incident and channel. */
  number: number;
  at: Date;
}

/** What one message with a list says. Pure. */
export function listStage(
  family: Family,
  { alerts, part, parts, cannotWait, number, at }: ListPart,
): Stage {
  const money = moneyOf(alerts);
  const lead = money.length === 0 ? "" : `${sumText(money)} in `;
  const why = cannotWait ? "that cannot wait for the end of a storm" : "that a storm held back";
  const count = `${alerts.length} ${alerts.length === 1 ? "alert" : "alerts"}`;
  return {
    name: `list:${number}`,
    change: "updated",
    at,
    rule: stormFamilies[family].rule,
    severity: inListOrder(alerts)[0]?.severity ?? "warning",
    title: `${lead}${count} ${why}${parts > 1 ? ` (${part} of ${parts})` : ""}`,
    advice: adviceOn(alerts),
    facts: [...money, ...countsByRule(alerts)],
    canWait: false,
  };
}

/** What to do about all of them where that is the same, else where it is said. */
function adviceOn(alerts: readonly ListedAlert[]): string {
  const all = new Set(alerts.map(({ advice }) => advice));
  const [common = ""] = all.size === 1 ? all : [];
  return `${common} Begin at the top: "npx tallyhook alerts show NUMBER" says what to do about one of them.`.trim();
}

const countsByRule = (alerts: readonly ListedAlert[]): AlertFact[] => {
  const counts = new Map<string, number>();
  for (const { rule } of alerts) counts.set(rule, (counts.get(rule) ?? 0) + 1);
  return [...counts].map(([label, n]) => ({ label, value: String(n) }));
};

export interface StormItemCount {
  toldHow: "alone" | "at_once" | "at_end" | "over";
  alerts: number;
  currency: string | null;
  amountMinor: number | null;
}

/** What the end of a storm says: how many there were, what became of them, and what they come to. Pure. */
export function stormEnd(
  family: Family,
  counts: readonly StormItemCount[],
): { title: string; facts: AlertFact[] } {
  const of = (...how: StormItemCount["toldHow"][]) =>
    counts.filter(({ toldHow }) => how.includes(toldHow));
  const sum = (some: readonly StormItemCount[]) =>
    some.reduce((all, { alerts }) => all + alerts, 0);
  const listed = of("at_once", "at_end");
  const money = moneyOf(of("alone", "at_once", "at_end"));
  const { end } = stormFamilies[family];
  const inAll = money.length === 0 ? "" : `, ${sumText(money)} in all`;
  const facts: [string, number][] = [
    ["Told by themselves at once", sum(of("alone"))],
    ["Listed at once", sum(of("at_once"))],
    ["Held back, and listed now", sum(of("at_end"))],
    ["Over before they were listed", sum(of("over"))],
  ];
  return {
    title:
      listed.length === 0 ? `${end}${inAll}` : `${end}: ${sum(listed)} alerts were listed${inAll}`,
    facts: [
      ...money,
      ...facts.flatMap(([label, n]) => (n === 0 ? [] : [{ label, value: String(n) }])),
    ],
  };
}
