import { localTimeIn, instantsOf } from "./local-time.ts";
import { onDemand } from "./on-demand.ts";

const parser = () => onDemand.cronParser.CronExpressionParser;

/** After a clock is set back, at most this much time is repeated. */
const longestRepeatMs = 2 * 3_600_000;

/**
 * The last minute at which a five-field cron expression is due in a time zone, at or before `now` and within `withinMs`
 * of it; null when there is none. A time that daylight saving skips is shifted by the jump (2:30 is due at 3:30). A
 * time that is repeated is due the first time.
 */
export function lastDue(
  expression: string,
  { timeZone, now, withinMs }: { timeZone: string; now: Date; withinMs: number },
): Date | null {
  // Computed on wall-clock time as if it were UTC: with a zone, cron-parser loses times in a skipped hour.
  const { year, month, day, hour, minute } = localTimeIn(timeZone)(now);
  const shown = Date.UTC(year, month - 1, day, hour, minute);
  const currentDate = new Date(shown + longestRepeatMs);
  const schedule = parser().parse(expression, { tz: "UTC", currentDate });
  for (;;) {
    const [due] = instantsOf(wallTime(schedule.prev().toDate()), timeZone);
    if (due !== undefined && due <= now) {
      return due.getTime() > now.getTime() - withinMs ? due : null;
    }
  }
}

/** The first minute after `now` at which an expression is due, by the rules of `lastDue`. */
export function nextDue(expression: string, { timeZone, now }: { timeZone: string; now: Date }): Date {
  const { year, month, day, hour, minute } = localTimeIn(timeZone)(now);
  const shown = Date.UTC(year, month - 1, day, hour, minute);
  const currentDate = new Date(shown - longestRepeatMs);
  const schedule = parser().parse(expression, { tz: "UTC", currentDate });
  for (;;) {
    const [due] = instantsOf(wallTime(schedule.next().toDate()), timeZone);
    if (due !== undefined && due > now) return due;
  }
}

const wallTime = (shown: Date) => ({
  year: shown.getUTCFullYear(),
  month: shown.getUTCMonth() + 1,
  day: shown.getUTCDate(),
  hour: shown.getUTCHours(),
  minute: shown.getUTCMinutes(),
});

/** `H`, which cron-parser replaces by a random number, and `1-2-3`, of which it drops the end. */
const ambiguous = /\bH\b|-\w+-/i;

/** For each field, the highest step that matches more than the field's first value. */
const highestSteps = [59, 23, 31, 12, 7];

/**
 * Whether a text is a five-field cron expression. Rejects mistakes that cron-parser accepts: a field of seconds,
 * missing fields, and steps beyond the end of their field ("every 90 minutes" would run every hour).
 */
export function isCronExpression(text: string): boolean {
  const fields = text.trim().split(/\s+/);
  if (fields.length !== highestSteps.length || ambiguous.test(text)) return false;
  const isStep = (field: string, n: number): boolean =>
    [...field.matchAll(/\/(\d+)/g)].every(([, step]) => Number(step) <= (highestSteps[n] ?? 0));
  if (!fields.every(isStep)) return false;
  try {
    parser().parse(text);
    return true;
  } catch {
    return false;
  }
}
