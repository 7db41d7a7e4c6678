import type { AlertItem, AlertMessage, AlertSeverity } from "../message.ts";
import { moneyText } from "../../platform/money.ts";
import { causeOf } from "./decline-groups.ts";
import { endHeadline, lostHeadline } from "./declines.ts";
import { lastTryHeadline } from "./last-retry.ts";
import { counted, headlineText, orderName } from "./wording.ts";
import type { Wording } from "./wording.ts";

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
}

/**
 * What the list asks about an alert, by how it stands now. Null: nothing any more, since somebody has taken it or it is
 * over without anybody having been told. Pure.
 */
export function digestSection({ rule, state, isFinal, stages }: DigestState): DigestSection | null {
  if (state === "resolved") {
    return stages.some((name) => name === "recovered" || name === "canceled") ? "over" : null;
  }
  if (state === "acknowledged") return null;
  if (isFinal) return "lost";
  if (stages.some((name) => name.startsWith("last-retry:"))) return "last-try";
  return rule === "decline" ? "order" : "waiting";
}

/** Whether a list is worth a message: somebody has to do something, or may stop doing it. Pure. */
export const asksSomething = (entries: readonly DigestEntry[]): boolean =>
  entries.some(({ section }) => section !== "waiting");

/** More than anybody reads. */
const maxItems = 50;

/** The day's list as a title, facts, advice and items. Pure. */
export function digestWords(
  entries: readonly DigestEntry[],
  wording: Wording,
): Pick<AlertMessage, "severity" | "title" | "facts" | "advice" | "items"> {
  const of = (section: DigestSection) => entries.filter((entry) => entry.section === section);
  const listed = digestSections
    .filter((section) => section !== "waiting")
    .flatMap((section) => of(section).toSorted(byAmount));
  const parts = digestSections.flatMap((section) => {
    const own = of(section);
    return own.length === 0 || section === "waiting"
      ? []
      : [{ section, says: titles[section](own.length), sum: sumsOf(own) }];
  });
  const waiting = of("waiting");
  return {
    severity: severityOf(parts, wording),
    title: headlineText({
      lead: parts.map(({ says, sum }, n) => (n === 0 ? `${says} (${sum})` : says)).join(", "),
    }),
    facts: [
      ...parts.map(({ section, sum }) => ({ label: labels[section], value: sum })),
      ...(waiting.length === 0
        ? []
        : [
            {
              label: labels.waiting,
              value: `${counted(waiting.length, "declined renewal")} (${sumsOf(waiting)}): the service tries again`,
            },
          ]),
      ...(listed.length > maxItems
        ? [{ label: "Not shown here", value: String(listed.length - maxItems) }]
        : []),
    ],
    advice: parts.map(({ section }) => advice[section]).join(" "),
    items: listed.slice(0, maxItems).map((entry) => itemOf(entry, wording)),
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
  "last-try": "Before the last try: write or call today, or the renewal is lost.",
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

function itemOf(entry: DigestEntry, { shortTime }: Wording): AlertItem {
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

/** By currency, then the largest first. */
function byAmount(a: DigestEntry, b: DigestEntry): number {
  const [ours, theirs] = [a.currency ?? "", b.currency ?? ""];
  if (ours !== theirs) return ours < theirs ? -1 : 1;
  const more = (b.amountMinor ?? 0n) - (a.amountMinor ?? 0n);
  return more === 0n ? a.alertId - b.alertId : Number(more > 0n) * 2 - 1;
}

/** Currencies are never added. */
function sumsOf(entries: readonly DigestEntry[]): string {
  const sums = new Map<string | null, bigint>();
  for (const { amountMinor, currency } of entries) {
    sums.set(currency, (sums.get(currency) ?? 0n) + (amountMinor ?? 0n));
  }
  return [...sums]
    .sort(([a], [b]) => ((a ?? "") < (b ?? "") ? -1 : 1))
    .map(([currency, sum]) => moneyText(sum, currency))
    .join(", ");
}
