import { moneyText } from "../../platform/money.ts";
import { counted } from "../../platform/counted.ts";

/** What one alert is about, or several of one currency together. */
export interface Amount {
  /** Minor units; null where nobody knows, or where it is about no money. */
  amountMinor: bigint | null;
  currency: string | null;
  /** How many alerts it is the sum of; 1 where left out. */
  alerts?: number;
}

/**
 * The sum of each currency, in words. Currencies are neither added nor compared: 100 yen are not more than 1 euro. The one
 * of the most alerts comes first. Pure.
 */
export function sumTexts(amounts: readonly Amount[]): string[] {
  const sums = new Map<string, { minor: bigint; alerts: number }>();
  for (const { amountMinor, currency, alerts = 1 } of amounts) {
    if (amountMinor === null) continue;
    const code = currency?.toUpperCase() ?? "";
    const sum = sums.get(code) ?? { minor: 0n, alerts: 0 };
    sums.set(code, { minor: sum.minor + amountMinor, alerts: sum.alerts + alerts });
  }
  return [...sums]
    .sort(([a, one], [b, other]) => other.alerts - one.alerts || (a < b ? -1 : 1))
    .map(([code, { minor }]) => moneyText(minor, code));
}

/** So many currencies fit in a title. */
const maxInTitle = 3;

/** Sums for a title: of those that do not fit it says how many there are. Pure. */
export function sumsInTitle(texts: readonly string[]): string {
  const left = texts.length - maxInTitle;
  const shown = texts.slice(0, maxInTitle).join(", ");
  return left <= 0 ? shown : `${shown} and ${counted(left, "more currency", "more currencies")}`;
}

/** By currency, then the largest first; what is about no known amount comes last. Pure. */
export function byMoney(a: Amount, b: Amount): number {
  const isKnown = Number(b.amountMinor !== null) - Number(a.amountMinor !== null);
  if (isKnown !== 0 || a.amountMinor === null || b.amountMinor === null) return isKnown;
  const [ours, theirs] = [a.currency?.toUpperCase() ?? "", b.currency?.toUpperCase() ?? ""];
  if (ours !== theirs) return ours < theirs ? -1 : 1;
  if (a.amountMinor === b.amountMinor) return 0;
  return a.amountMinor < b.amountMinor ? 1 : -1;
}
