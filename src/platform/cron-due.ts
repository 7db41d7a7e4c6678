import { cronMatches } from "./cron-expression.ts";
import type { LocalMinute } from "./cron-expression.ts";

const minuteMs = 60_000;
const weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/**
 * The last minute at or before `now`, and within `withinMs` of it, at which a cron expression of five fields is due in a
 * time zone; null when there is none. Tries every minute backwards: hours that daylight saving skips never match,
 * hours that it repeats match twice.
 */
export function lastDue(
  expression: string,
  { timeZone, now, withinMs }: { timeZone: string; now: Date; withinMs: number },
): Date | null {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone,
    hourCycle: "h23",
    minute: "numeric",
    hour: "numeric",
    day: "numeric",
    month: "numeric",
    weekday: "short",
  });
  const thisMinute = Math.floor(now.getTime() / minuteMs) * minuteMs;
  for (let at = thisMinute; at > now.getTime() - withinMs; at -= minuteMs) {
    if (cronMatches(expression, localMinute(format, new Date(at)))) return new Date(at);
  }
  return null;
}

function localMinute(format: Intl.DateTimeFormat, at: Date): LocalMinute {
  const parts = new Map(format.formatToParts(at).map(({ type, value }) => [type, value]));
  const number = (type: Intl.DateTimeFormatPartTypes) => Number(parts.get(type));
  return {
    minute: number("minute"),
    hour: number("hour"),
    day: number("day"),
    month: number("month"),
    weekday: weekdays.indexOf(parts.get("weekday") ?? ""),
  };
}
