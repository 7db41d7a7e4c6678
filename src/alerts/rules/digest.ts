import type { AlertItem, AlertMessage, AlertSeverity } from "../message.ts";
import { moneyText } from "../../platform/money.ts";
import { causeOf } from "./decline-groups.ts";
import { endHeadline, lostHeadline } from "./declines.ts";
import { lastTryHeadline } from "./last-retry.ts";
import { counted } from "../../platform/counted.ts";
import { byMoney, sumsInTitle, sumTexts } from "./sums.ts";
import { headlineText, listTitle, orderName } from "./wording.ts";
import type { Part, Wording } from "./wording.ts";

/** An alert as the day's list shows it. */
export interface DigestEntry {
  alertId: number;
  /** What people are asked to do about it; `waiting` asks nothing, and is only counted. */
  section: DigestSection;
  amountMinor: bigint | null;
  currency: string | null;
  person: string | null;
  orderNumber: string | null;
  failureCode: string | null;
  attempts: number;
  nextRetryAt: Date | null;
  isPaid: boolean;
}

export const digestSections = ["lost", "last-try", "order", "over", "waiting"] as const;
export type DigestSection = (typeof digestSections)[number];

export interface DigestState {
  rule: string;
  state: "open" | "acknowledged" | "resolved";
  isFinal: boolean;
  /** The stages that wait for this list. */
  stages: readonly string[];
  /** Whether one of them came after somebody took the alert. */
  isNewSinceTaken: boolean;
}

/**
 * What the list asks about an alert, by how it stands now. Null: nothing any more, since somebody has taken it or it is
 * over without anybody having been told. What was taken and has come to something new since is asked for again: who took
 * it has not heard of that. Pure.
 */
export function digestSection({
  rule,
  state,
  isFinal,
  stages,
  isNewSinceTaken,
}: DigestState): DigestSection | null {
  if (state === "resolved") {
    return stages.some((name) => name === "recovered" || name === "canceled") ? "over" : null;
  }
  if (state === "acknowledged" && !isNewSinceTaken) return null;
  if (isFinal) return "lost";
  if (stages.some((name) => name.startsWith("last-retry:"))) return "last-try";
  return rule === "decline" ? "order" : "waiting";
}

/** Whether a list is worth a message: somebody has to do something, or may stop doing it. Pure. */
export const asksSomething = (entries: readonly DigestEntry[]): boolean =>
  entries.some(({ section }) => section !== "waiting");

/** What the list names, in its order: what is to be done first, and the largest first within a currency. Pure. */
export const namedEntries = (entries: readonly DigestEntry[]): DigestEntry[] =>
  digestSections
    .filter((section) => section !== "waiting")
    .flatMap((section) =>
      entries
        .filter((entry) => entry.section === section)
        .toSorted((a, b) => byMoney(a, b) || a.alertId - b.alertId),
    );

/**
 * The day's list as a title, facts, advice and items. `entries` are those of this message, in the order of `namedEntries`
 * (what only waits is counted with them); sums are theirs alone. Pure.
 */
export function digestWords(
  entries: readonly DigestEntry[],
  wording: Wording,
  which: Part = { part: 1, parts: 1 },
): Pick<AlertMessage, "severity" | "title" | "facts" | "advice" | "items"> {
  const of = (section: DigestSection) => entries.filter((entry) => entry.section === section);
  const parts = digestSections.flatMap((section) => {
    const own = of(section);
    return own.length === 0 || section === "waiting"
      ? []
      : [{ section, says: titles[section](own.length), sums: sumsOf(own) }];
  });
  const waiting = of("waiting");
  return {
    severity: severityOf(parts, wording),
    title: listTitle(
      parts
        .map(({ says, sums }, n) => (n === 0 ? `${says} (${sumsInTitle(sums)})` : says))
        .join(", "),
      which,
    ),
    facts: [
      ...parts.map(({ section, sums }) => ({ label: labels[section], value: sums.join(", ") })),
      ...(waiting.length === 0
        ? []
        : [
            {
              label: labels.waiting,
              value: `${counted(waiting.length, "declined renewal")} (${sumsOf(waiting).join(", ")}): the service tries again`,
            },
          ]),
    ],
    advice: parts.map(({ section }) => advice[section]).join(" "),
    items: entries
      .filter(({ section }) => section !== "waiting")
      .map((entry) => digestItem(entry, wording)),
  };
}

type Asking = Exclude<DigestSection, "waiting">;

const titles: Readonly<Record<Asking, (n: number) => string>> = {
  lost: (n) => `${counted(n, "renewal")} LOST`,
  "last-try": (n) => `${n} before the last try`,
  order: (n) => `${counted(n, "order")} not paid`,
  over: (n) => `${n} settled`,
};

const labels: Readonly<Record<DigestSection, string>> = {
  lost: "LOST, collect or cancel",
  "last-try": "Before the last try, write to them",
  order: "Orders not paid",
  over: "Settled, cross off",
  waiting: "Nothing to do yet",
};

const advice: Readonly<Record<Asking, string>> = {
  lost:
    'LOST: write to the customer to pay another way, or cancel the subscription ("npx tallyhook alerts list ' +
    '--rule dunning_final" lists ' +
    "all that are open).",
  "last-try":
    "Before the last try: write or call today, or the renewal is lost " +
    '("npx tallyhook alerts list --rule dunning_renewal").',
  order:
    'Orders not paid: nothing retries them; write to who did not come back ("npx tallyhook alerts list --rule ' +
    'decline").',
  over: "Settled: remind nobody any more.",
};

function severityOf(
  parts: readonly { section: DigestSection }[],
  { rules }: Wording,
): AlertSeverity {
  const has = (section: DigestSection) => parts.some((part) => part.section === section);
  if (has("lost")) return rules.dunning_final.severity;
  if (has("last-try")) return rules.dunning_last_retry.severity;
  return has("order") ? rules.decline.severity : "info";
}

/** An alert as the list shows it. Pure. */
export function digestItem(entry: DigestEntry, { shortTime }: Wording): AlertItem {
  const { alertId, person, orderNumber, failureCode } = entry;
  return {
    alertId,
    title: headlineText(headlineOf(entry, shortTime), person),
    facts: [
      { label: "Order", value: orderNumber ?? "-" },
      { label: "Last decline", value: causeOf(failureCode) },
      ...(entry.section === "over"
        ? []
        : [{ label: "Take it", value: `npx tallyhook alerts ack ${alertId}` }]),
    ],
  };
}

function headlineOf(entry: DigestEntry, shortTime: Wording["shortTime"]) {
  const amount = moneyText(entry.amountMinor, entry.currency);
  switch (entry.section) {
    case "lost":
      return lostHeadline(amount, entry.attempts);
    case "last-try":
      return lastTryHeadline(
        amount,
        entry.nextRetryAt === null ? "soon" : shortTime(entry.nextRetryAt),
      );
    case "over":
      return endHeadline(amount, { isPaid: entry.isPaid, tries: entry.attempts });
    case "order":
    case "waiting":
      return {
        lead: [amount, orderName(entry.orderNumber) ?? "order"].join(" "),
        cause: causeOf(entry.failureCode),
      };
  }
}

/** Sums by currency, and how many amounts nobody knows. */
function sumsOf(entries: readonly DigestEntry[]): string[] {
  const unknown = entries.filter(({ amountMinor }) => amountMinor === null).length;
  return [...sumTexts(entries), ...(unknown === 0 ? [] : [counted(unknown, "unknown amount")])];
}
