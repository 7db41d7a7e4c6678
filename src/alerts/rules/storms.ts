import type { AlertSettings } from "../settings.ts";
import { stormFamilies } from "./storm-families.ts";
import { noSubject } from "./story.ts";
import type { Family, Story } from "./story.ts";

/** How many alerts of a family in a window are still told one by one. Pure. */
export function usualLimit(
  { rules: { decline_storm: storm } }: Pick<AlertSettings, "rules">,
  family: Family,
  usual: number | null,
): number {
  const { limit } = stormFamilies[family];
  if (limit !== null) return limit;
  return Math.max(storm.atLeast, Math.ceil(storm.factor * (usual ?? 0)));
}

export interface StormCount {
  count: number;
  /** By failure code, where the alerts have one. */
  codes: Readonly<Record<string, number>>;
  limit: number;
  withinMinutes: number;
  at: Date;
}

/** The incident that stands for a crowd of alerts. Pure. */
export function stormStory(
  { rules }: Pick<AlertSettings, "rules">,
  family: Family,
  { count, codes, limit, withinMinutes, at }: StormCount,
): Story {
  const { rule, title, advice } = stormFamilies[family];
  const facts = [
    { label: `In ${withinMinutes} minutes`, value: String(count) },
    { label: "Told one by one up to", value: String(limit) },
    ...Object.entries(codes)
      .slice(0, 8)
      .map(([label, n]) => ({ label, value: String(n) })),
  ];
  return {
    key: `storm:${family}`,
    subject: noSubject,
    amountMinor: null,
    currency: null,
    facts: { count, limit },
    family: null,
    stages: [
      {
        name: "opened",
        change: "opened",
        at,
        rule,
        // Events that die together have a cause that is ours.
        severity: family === "dead" ? "critical" : rules[rule].severity,
        title: title(count, withinMinutes),
        advice,
        facts,
        canWait: false,
      },
    ],
  };
}
