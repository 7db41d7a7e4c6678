import { tallyhook } from "../../../platform/command-line.ts";
import { moneyText } from "../../../platform/money.ts";
import { counted, oneLine } from "../../../platform/readable-text.ts";

/** The tools with which rules write for people. */
export interface Wording {
  /** `2026-10-24 14:25 Europe/Berlin`, for the body. */
  localTime(at: Date): string;
  /** `24 Oct 14:25`, for titles. */
  shortTime(at: Date): string;
}

/** A title fits the notification of a phone and the subject of a mail. */
const maxTitle = 110;

/** A title in parts, the most important first. All but the first may be missing. */
export interface Headline {
  /** An amount or a count, and its subject: `12.345 KWD renewal declined (2nd attempt)`. */
  lead: string;
  /** The cause or the present state: `insufficient funds`. */
  cause?: string | null;
  /** The next step, or the action: `Next retry 24 Oct 14:25`. Dropped first where the title is too long. */
  next?: string | null;
}

/** The title as one line without ids. A message names the customer after the lead; the stored title names no one. */
export function headlineText({ lead, cause, next }: Headline, person: string | null = null): string {
  const upToCause = `${lead}${person === null ? "" : `, ${person}`}${cause == null ? "" : `: ${cause}`}`;
  const whole = next == null ? upToCause : `${upToCause}. ${next}`;
  return oneLine(whole.length <= maxTitle ? whole : upToCause, maxTitle);
}

/** The two forms of a transition's title. */
export const titled = (headline: Headline): { title: string; headline: Headline } => ({
  title: headlineText(headline),
  headline,
});

/** The number of a message among the messages of a list; both count from 1. */
export interface Part {
  part: number;
  parts: number;
}

/** The title of a list that may be split: it ends in `(2 of 3)`, even if other parts must be dropped. */
export function listTitle(lead: string, { part, parts }: Part): string {
  const suffix = parts > 1 ? ` (${part} of ${parts})` : "";
  return `${oneLine(lead, maxTitle - suffix.length)}${suffix}`;
}

/** `1st`, `2nd`, `3rd`, `11th`. */
export function ordinal(n: number): string {
  const isTeen = n % 100 >= 11 && n % 100 <= 13;
  const ending = isTeen ? "th" : (["th", "st", "nd", "rd"][n % 10] ?? "th");
  return `${n}${ending}`;
}

/** Outside text, short enough for a title. */
export const shortened = (text: string, max = 40): string => oneLine(text, max);

const isUuid = /[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}/i;

/**
 * `order ZXYQF2JM`; null where the number is missing, has no visible characters, or is a UUID, which no person can say.
 */
export function orderName(orderNumber: string | null): string | null {
  const shown = shortened(orderNumber ?? "", 24);
  return shown === "" || isUuid.test(orderNumber ?? "") ? null : `order ${shown}`;
}

/** Outside text for a title: ids, which no person can read, become `…`. */
export const withoutIds = (text: string): string => text.replace(new RegExp(isUuid.source, "gi"), "…");

/** Advice for the time after webhooks did not arrive or were refused. */
export const reconcileAfterMissedWebhooks = `Run "${tallyhook("reconcile")}" now. It corrects the mirror where webhooks were missed`;

/** Advice of alerts that never end by themselves, because the reported fact is never undone. */
export const endsByAcknowledging =
  "This alert comes once and does not end by itself: acknowledge it when that is done.";

/** The amount of one alert, or of several alerts in one currency. */
export interface Amount {
  /** Minor units; null where unknown, or where no money is concerned. */
  amountMinor: bigint | null;
  currency: string | null;
  /** The number of alerts in the sum; 1 if omitted. */
  alerts?: number;
  /** Number of alerts without a known amount; by `amountMinor` if omitted. */
  unknown?: number;
}

/**
 * The sum of each currency, as text, and how many amounts are not known. Currencies are neither added nor compared: 100
 * yen are not more than 1 euro. The currency with the most alerts comes first.
 */
export function sumTexts(amounts: readonly Amount[]): string[] {
  const sums = new Map<string, { minor: bigint; alerts: number }>();
  let unknown = 0;
  for (const { amountMinor, currency, alerts = 1, ...amount } of amounts) {
    unknown += amount.unknown ?? (amountMinor === null ? alerts : 0);
    if (amountMinor === null) continue;
    const code = currency?.toUpperCase() ?? "";
    const sum = sums.get(code) ?? { minor: 0n, alerts: 0 };
    sums.set(code, { minor: sum.minor + amountMinor, alerts: sum.alerts + alerts });
  }
  const texts = [...sums]
    .sort(([a, one], [b, other]) => other.alerts - one.alerts || (a < b ? -1 : 1))
    .map(([code, { minor }]) => moneyText(minor, code));
  return unknown === 0 ? texts : [...texts, counted(unknown, "unknown amount")];
}

/** The number of currencies that fit in a title. */
const maxInTitle = 3;

/** Sums for a title, with the number of those that do not fit. */
export function sumsInTitle(texts: readonly string[]): string {
  const left = texts.length - maxInTitle;
  const shown = texts.slice(0, maxInTitle).join(", ");
  return left <= 0 ? shown : `${shown} and ${counted(left, "more currency", "more currencies")}`;
}

/** Orders by currency, then by the largest amount. Unknown amounts come last. */
export function byMoney(a: Amount, b: Amount): number {
  const isKnown = Number(b.amountMinor !== null) - Number(a.amountMinor !== null);
  if (isKnown !== 0 || a.amountMinor === null || b.amountMinor === null) return isKnown;
  const [ours, theirs] = [a.currency?.toUpperCase() ?? "", b.currency?.toUpperCase() ?? ""];
  if (ours !== theirs) return ours < theirs ? -1 : 1;
  if (a.amountMinor === b.amountMinor) return 0;
  return a.amountMinor < b.amountMinor ? 1 : -1;
}
