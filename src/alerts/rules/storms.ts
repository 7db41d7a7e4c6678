import type { AlertSettings } from "../settings.ts";
import type { Condition } from "./condition.ts";
import { stormFamilies } from "./storm-families.ts";
import type { Family } from "./story.ts";
import { sumTexts } from "./sums.ts";
import type { Amount } from "./sums.ts";

/** How many alerts of a family in a window are still told one by one. Pure. */
export function usualLimit(
  { rules: { decline_storm: storm } }: Pick<AlertSettings, "rules">,
  family: Family,
  usual: number | null,
): number {
  const { limit } = stormFamilies[family];
  const byRate = Math.max(storm.atLeast, Math.ceil(storm.factor * (usual ?? 0)));
  if (family === "late-declines") return Math.max(limit ?? 0, byRate);
  return limit ?? byRate;
}

/** What a crowd of alerts comes to. */
export interface StormTotals {
  /** Alerts, not their stages. */
  alerts: number;
  /** In minor units; currencies are never added. */
  sums: readonly Amount[];
  /** By failure code, where the alerts have one. */
  codes: Readonly<Record<string, number>>;
}

export interface StormCount extends StormTotals {
  /** In so many minutes; it may be longer than the window in which storms are seen. */
  minutes: number;
  limit: number;
  at: Date;
}

/** How many alerts of a storm were told in one way, and their money in one currency. */
export interface StormItemCount {
  toldHow: "alone" | "at_once" | "at_end" | "over" | "in_digest";
  alerts: number;
  currency: string | null;
  amountMinor: bigint | null;
}

/** The incident that stands for a crowd of alerts; it grows with them. Pure. */
export function stormCondition(
  { rules }: Pick<AlertSettings, "rules">,
  family: Family,
  { alerts, sums, codes, minutes, limit, at }: StormCount,
): Condition {
  const { rule, holds, stages, title, advice } = stormFamilies[family];
  const isMoney = stages === "attempt:" || family === "chargebacks";
  const named = holds.map((name) => `"npx tallyhook alerts list --rule ${name}"`).join(", ");
  return {
    key: `storm:${family}`,
    rule,
    // Events that die together have a cause that is ours.
    severity: family === "dead" ? "critical" : rules[rule].severity,
    title: title(alerts, minutes),
    advice: `${advice} ${isMoney ? moneyInStorm : "Each"} is listed when this is over, or after an hour. Until then: ${named}.`,
    facts: [
      ...sumTexts(sums).map((value) => ({ label: "Money", value })),
      { label: `In ${minutes} minutes`, value: String(alerts) },
      { label: "Told one by one up to", value: String(limit) },
      { label: "Rules that are held back", value: holds.join(", ") },
      ...Object.entries(codes)
        .slice(0, 8)
        .map(([label, n]) => ({ label, value: String(n) })),
    ],
    kept: { count: alerts, limit },
    measures: { alerts },
    at,
  };
}

const moneyInStorm =
  "Fraud, chargebacks, high amounts and what is lost for good are told at once all the same, and what goes into the " +
  "daily list still does; the rest";
