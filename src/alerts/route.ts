import { zoneOf } from "./desk.ts";
import type { AlertDesk } from "./desk.ts";
import { quietUntil } from "./quiet-hours.ts";
import type { Stage } from "./rules/story.ts";

/** Where a stage is told, and how soon. */
export interface Route {
  channels: readonly string[];
  /** Told with the next digest instead of by itself. */
  inDigest: boolean;
  /** Not before this time; null: at once. */
  notBefore: Date | null;
}

/** Whom a stage concerns: the channels of its rule, later in quiet hours, together with others where it can wait. Pure. */
export function routeOf(
  { settings, ...desk }: AlertDesk,
  stage: Pick<Stage, "rule" | "severity" | "canWait">,
): Route {
  const rule = settings.rules[stage.rule];
  const own = rule.channels ?? settings.defaultChannels;
  if (!rule.enabled) return { channels: [], inDigest: false, notBefore: null };
  if (stage.canWait && settings.digests.when !== "off") {
    return { channels: settings.digests.channels ?? own, inDigest: true, notBefore: null };
  }
  return { channels: own, inDigest: false, notBefore: quietEnd({ settings, ...desk }, stage) };
}

/** Whether an incident stays open there, and goes on to wake people, until its end is told. Pure. */
export function keepsIncidents({ channels }: AlertDesk["settings"], channel: string): boolean {
  const kind = channels[channel]?.kind;
  return kind === "pagerduty" || kind === "webhook";
}

/**
 * Where the end of an alert is told: at once where people were told of it, on the next list where it stood on one
 * before, or where nothing is lost by waiting. Pure.
 */
export function endRouteOf(
  { settings }: Pick<AlertDesk, "settings">,
  stage: Pick<Stage, "canWait">,
  { told, listed }: { told: readonly string[]; listed: readonly string[] },
): { atOnce: readonly string[]; inDigest: readonly string[] } {
  const mayWait = stage.canWait && settings.digests.when !== "off";
  const atOnce = told.filter((channel) => !mayWait || keepsIncidents(settings, channel));
  const others = [...told, ...listed].filter((channel) => !atOnce.includes(channel));
  return { atOnce, inDigest: [...new Set(others)] };
}

/** When the quiet hours end, for what is not urgent enough to break them; null: it may be told now. Pure. */
export function quietEnd(desk: AlertDesk, { severity }: Pick<Stage, "severity">): Date | null {
  const { quietHours } = desk.settings;
  if (quietHours === null || quietHours.except.includes(severity)) return null;
  return quietUntil(quietHours, zoneOf(desk), desk.clock.now());
}
