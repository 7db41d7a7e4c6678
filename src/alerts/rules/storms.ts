import type { AlertSettings } from "../settings.ts";
import { noSubject } from "./story.ts";
import type { Family, Story } from "./story.ts";

/** More dead events than this in a window have one cause. */
const maxDead = 10;

/** How many alerts of a family in a window are still told one by one. Pure. */
export function usualLimit(
  { rules: { decline_storm: storm } }: Pick<AlertSettings, "rules">,
  family: Family,
  usual: number | null,
): number {
  if (family === "dead") return maxDead;
  return Math.max(storm.atLeast, Math.ceil(storm.factor * (usual ?? 0)));
}

export interface StormCount {
  count: number;
  /** Declines by failure code. */
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
  const isDeclines = family === "declines";
  const facts = [
    { label: `In ${withinMinutes} minutes`, value: String(count) },
    { label: "Told one by one up to", value: String(limit) },
    ...(isDeclines
      ? Object.entries(codes)
          .slice(0, 8)
          .map(([label, n]) => ({ label, value: String(n) }))
      : []),
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
        rule: isDeclines ? "decline_storm" : "event_dead",
        severity: isDeclines ? rules.decline_storm.severity : "critical",
        title: isDeclines
          ? `Declines at a multiple of their usual rate: ${count} in ${withinMinutes} minutes`
          : `Events are dying: ${count} in ${withinMinutes} minutes`,
        advice: isDeclines
          ? "Look at the codes: one code for all points to the gateway or to our configuration, fraud codes to an attack " +
            "with stolen cards. The single alerts are held back meanwhile: npx tallyhook alerts list --rule decline."
          : "They have one cause as a rule, such as a new format: npx tallyhook events list --state dead. Once it is mended: npx tallyhook events replay --dead.",
        facts,
        canWait: false,
      },
    ],
  };
}
