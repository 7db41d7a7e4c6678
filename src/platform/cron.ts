import { CronExpressionParser } from "cron-parser";
import { localTimeIn, momentsOf } from "./local-time.ts";

/** A clock that is set back shows no more than this again. */
const longestRepeatMs = 2 * 3_600_000;

/**
 * The last minute at or before `now`, and within `withinMs` of it, at which a cron expression of five fields is due in a
 * time zone; null when there is none. What is due in an hour that daylight saving skips is due as long after the jump;
 * what is due in an hour that is repeated is due the first time.
 */
export function lastDue(
  expression: string,
  { timeZone, now, withinMs }: { timeZone: string; now: Date; withinMs: number },
): Date | null {
  // On the face of the wall clock, taken for one of UTC: in a zone cron-parser loses what is due in a skipped hour.
  const { year, month, day, hour, minute } = localTimeIn(timeZone)(now);
  const shown = Date.UTC(year, month - 1, day, hour, minute);
  const currentDate = new Date(shown + longestRepeatMs);
  const schedule = CronExpressionParser.parse(expression, { tz: "UTC", currentDate });
  for (;;) {
    const [due] = momentsOf(wallTime(schedule.prev().toDate()), timeZone);
    if (due !== undefined && due <= now) {
      return due.getTime() > now.getTime() - withinMs ? due : null;
    }
  }
}

const wallTime = (shown: Date) => ({
  year: shown.getUTCFullYear(),
  month: shown.getUTCMonth() + 1,
  day: shown.getUTCDate(),
  hour: shown.getUTCHours(),
  minute: shown.getUTCMinutes(),
});

/** A number that changes with each start (`H`), and the end of `1-2-3`, which cron-parser drops. */
const unclear = /\bH\b|-\w+-/i;

/** By field, the highest step of which more than the field's first value comes. */
const highestSteps = [59, 23, 31, 12, 7];

/**
 * Whether a text is a cron expression of five fields. Refuses what cron-parser takes and nobody means: a field of
 * seconds, fields left out, and steps past the end of their field (every 90th minute would come every hour).
 */
export function isCronExpression(text: string): boolean {
  const fields = text.trim().split(/\s+/);
  if (fields.length !== highestSteps.length || unclear.test(text)) return false;
  const isStep = (field: string, n: number): boolean =>
    [...field.matchAll(/\/(\d+)/g)].every(([, step]) => Number(step) <= (highestSteps[n] ?? 0));
  if (!fields.every(isStep)) return false;
  try {
    CronExpressionParser.parse(text);
    return true;
  } catch {
    return false;
  }
}
