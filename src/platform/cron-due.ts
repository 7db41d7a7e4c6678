import { cronMatches } from "./cron-expression.ts";
import { localTimeIn } from "./local-time.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/**
 * The last minute at or before `now`, and within `withinMs` of it, at which a cron expression of five fields is due in a
 * time zone; null when there is none. Tries every minute backwards. What is due in an hour that daylight saving skips
 * is due an hour later, as the queue's scheduler has it; an hour that is repeated matches twice.
 */
export function lastDue(
  expression: string,
  { timeZone, now, withinMs }: { timeZone: string; now: Date; withinMs: number },
): Date | null {
  const localTime = localTimeIn(timeZone);
  const thisMinute = Math.floor(now.getTime() / minuteMs) * minuteMs;
  for (let at = thisMinute; at > now.getTime() - withinMs; at -= minuteMs) {
    const local = localTime(new Date(at));
    if (cronMatches(expression, local)) return new Date(at);
    const hourBefore = localTime(new Date(at - hourMs)).hour;
    const isAfterSkipped = (local.hour - hourBefore + 24) % 24 === 2;
    const skipped = { ...local, hour: (hourBefore + 1) % 24 };
    if (isAfterSkipped && cronMatches(expression, skipped)) return new Date(at);
  }
  return null;
}
