import { alertSeverities } from "../message.ts";
import type { AlertFact, AlertItem, AlertSeverity } from "../message.ts";
import { moneyText } from "../../platform/money.ts";
import { counted } from "../../platform/counted.ts";
import type { End } from "./condition.ts";
import { stormFamilies } from "./storm-families.ts";
import type { StormItemCount } from "./storms.ts";
import type { Family, Stage } from "./story.ts";
import { byMoney, sumsInTitle, sumTexts } from "./sums.ts";
import { listTitle } from "./wording.ts";
import type { Part } from "./wording.ts";

/** An alert that waits for a list of its storm. */
export interface ListedAlert {
  id: number;
  rule: string;
  severity: AlertSeverity;
  title: string;
  advice: string;
  /** Null where it is about no money. */
  amountMinor: bigint | null;
  currency: string | null;
  /** What has become of it while it waited for the list; null while it is open. */
  sinceThen: string | null;
  /** The masked address and the id; null where it is about nobody. */
  customer: string | null;
}

/** An alert as a list shows it: how much, who, and the number by which a person looks it up. Pure. */
export function listItem({
  id,
  title,
  sinceThen,
  amountMinor,
  currency,
  customer,
}: ListedAlert): AlertItem {
  return {
    title,
    facts: [
      ...(sinceThen === null ? [] : [{ label: "Since then", value: sinceThen }]),
      ...(amountMinor === null
        ? []
        : [{ label: "Amount", value: moneyText(amountMinor, currency) }]),
      ...(customer === null ? [] : [{ label: "Customer", value: customer }]),
      { label: "Alert", value: String(id) },
    ],
    alertId: id,
  };
}

/** What has become of alerts, by the stages that end them. */
const endings: Readonly<Record<string, string>> = {
  recovered: "paid after all",
  canceled: "the subscription was canceled",
  accepted: "lost: the bank keeps the money",
  dismissed: "won: the money stays yours",
};

/** What a list says of an alert that is over before it was listed. Pure. */
export const endingOf = (stage: string): string => endings[stage] ?? "over";

/** What is open first, then the most urgent, then by currency the largest amounts. Pure. */
export const inListOrder = (alerts: readonly ListedAlert[]): ListedAlert[] =>
  [...alerts].sort(
    (a, b) =>
      Number(a.sinceThen !== null) - Number(b.sinceThen !== null) ||
      alertSeverities.indexOf(a.severity) - alertSeverities.indexOf(b.severity) ||
      byMoney(a, b) ||
      a.id - b.id,
  );

const moneyFacts = (sums: readonly string[]): AlertFact[] =>
  sums.map((value) => ({ label: "Money", value }));

/** How many of them ask for nothing any more. */
function overFacts(alerts: readonly ListedAlert[]): AlertFact[] {
  const over = alerts.filter(({ sinceThen }) => sinceThen !== null).length;
  return over === 0 ? [] : [{ label: "Over meanwhile, at the bottom", value: String(over) }];
}

export interface ListPart extends Part {
  /** Of this message. */
  alerts: readonly ListedAlert[];
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
  const sums = sumTexts(alerts);
  const lead = sums.length === 0 ? "" : `${sumsInTitle(sums)} in `;
  const why = cannotWait ? "that cannot wait for the end of a storm" : "that a storm held back";
  return {
    name: `list:${number}`,
    change: "updated",
    at,
    rule: stormFamilies[family].rule,
    severity: inListOrder(alerts)[0]?.severity ?? "warning",
    title: listTitle(`${lead}${counted(alerts.length, "alert")} ${why}`, { part, parts }),
    advice: adviceOn(alerts),
    facts: [...moneyFacts(sums), ...overFacts(alerts), ...countsByRule(alerts)],
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

/** Where somebody finds the alerts of a storm that is over. Pure. */
function whereTold(isListed: boolean, isInDigest: boolean): string {
  if (!isInDigest) {
    return isListed
      ? "The lists name each, the most urgent first."
      : "Each was told by itself, or is over.";
  }
  const others = isListed
    ? "the lists name the others"
    : "the others were told by themselves, or are over";
  return `What can wait is on the daily list; ${others}.`;
}

/** What the end of a storm says: how many there were, what became of them, and what they come to. Pure. */
export function stormEnd(family: Family, counts: readonly StormItemCount[]): End {
  const of = (...how: StormItemCount["toldHow"][]) =>
    counts.filter(({ toldHow }) => how.includes(toldHow));
  const sum = (some: readonly StormItemCount[]) =>
    some.reduce((all, { alerts }) => all + alerts, 0);
  const listed = of("at_once", "at_end");
  const sums = sumTexts(of("alone", "at_once", "at_end", "in_digest"));
  const { end, holds } = stormFamilies[family];
  const inAll = sums.length === 0 ? "" : `, ${sumsInTitle(sums)} in all`;
  const facts: [string, number][] = [
    ["Told by themselves at once", sum(of("alone"))],
    ["Listed at once", sum(of("at_once"))],
    ["Held back, and listed now", sum(of("at_end"))],
    ["Over before they were listed", sum(of("over"))],
    ["On the daily list", sum(of("in_digest"))],
  ];
  return {
    title:
      listed.length === 0
        ? `${end}${inAll}`
        : `${end}: ${counted(sum(listed), "alert was", "alerts were")} listed${inAll}`,
    advice:
      `${whereTold(listed.length > 0, of("in_digest").length > 0)} ` +
      `What is still open: ${holds.map((rule) => `"npx tallyhook alerts list --rule ${rule}"`).join(", ")}.`,
    facts: [
      ...moneyFacts(sums),
      ...facts.flatMap(([label, n]) => (n === 0 ? [] : [{ label, value: String(n) }])),
    ],
  };
}
