import { cronMatches } from "./cron-expression.ts";
import { localTimeIn } from "./local-time.ts";

const minuteMs = 60_000;

/**
 * The last minute at or before `now`, and within `withinMs` of it, at which a cron expression of five fields is due in a
 * time zone; null when there is none. Tries every minute backwards: hours that daylight saving skips never match,
 * hours that it repeats match twice.
 */
export function lastDue(
  expression: string,
  { timeZone, now, withinMs }: { timeZone: string; now: Date; withinMs: number },
): Date | null {
  const localTime = localTimeIn(timeZone);
  const thisMinute = Math.floor(now.getTime() / minuteMs) * minuteMs;
  for (let at = thisMinute; at > now.getTime() - withinMs; at -= minuteMs) {
    if (cronMatches(expression, localTime(new Date(at)))) return new Date(at);
  }
  return null;
}
