import { type LocalTime, localTimeIn } from "./local-time.ts";

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

const months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const weekdays = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

interface Field {
  min: number;
  max: number;
  /** Names that stand for `min`, `min + 1`, … */
  names: readonly string[];
}

const fields: readonly Field[] = [
  { min: 0, max: 59, names: [] },
  { min: 0, max: 23, names: [] },
  { min: 1, max: 31, names: [] },
  { min: 1, max: 12, names: months },
  { min: 0, max: 7, names: weekdays },
];

/** Whether a text is a cron expression of five fields: `*`, numbers, names, lists, ranges and steps. */
export function isCronExpression(text: string): boolean {
  const parts = text.trim().split(/\s+/);
  return (
    parts.length === fields.length &&
    fields.every((field, i) => (parts[i] ?? "").split(",").every((item) => isItem(item, field)))
  );
}

function isItem(item: string, field: Field): boolean {
  const [, range = "", step] = /^([^/]+)(?:\/(\d+))?$/.exec(item) ?? [];
  if (step !== undefined && (Number(step) < 1 || Number(step) > field.max)) return false;
  if (range === "*") return true;
  const bounds = range.split("-").map((bound) => toNumber(bound, field));
  const [from, to = from, ...rest] = bounds;
  return rest.length === 0 && from != null && to != null && from <= to;
}

/** Null when it is out of the field's range. */
function toNumber(text: string, { min, max, names }: Field): number | null {
  const named = names.indexOf(text.toLowerCase());
  if (named >= 0) return min + named;
  if (!/^\d{1,2}$/.test(text)) return null;
  const number = Number(text);
  return number >= min && number <= max ? number : null;
}

/**
 * Whether a valid expression is due in a minute. As cron has it: where both the day of the month and the weekday are
 * restricted, one of them is enough.
 */
function cronMatches(text: string, at: LocalTime): boolean {
  const [minute = "", hour = "", day = "", month = "", weekday = ""] = text.trim().split(/\s+/);
  const isDue = (part: string, n: number, value: number): boolean =>
    part.split(",").some((item) => includes(item, fields[n] as Field, value));
  const isDay = isDue(day, 2, at.day);
  const isWeekday = isDue(weekday, 4, at.weekday) || (at.weekday === 0 && isDue(weekday, 4, 7));
  const isDate =
    day.startsWith("*") || weekday.startsWith("*") ? isDay && isWeekday : isDay || isWeekday;
  return (
    isDue(minute, 0, at.minute) && isDue(hour, 1, at.hour) && isDue(month, 3, at.month) && isDate
  );
}

function includes(item: string, field: Field, value: number): boolean {
  const [, range = "", step] = /^([^/]+)(?:\/(\d+))?$/.exec(item) ?? [];
  const [from, to] =
    range === "*"
      ? [field.min, field.max]
      : range.split("-").map((bound) => toNumber(bound, field) ?? Number.NaN);
  if (from === undefined) return false;
  const last = to ?? (step === undefined ? from : field.max);
  return value >= from && value <= last && (value - from) % Number(step ?? 1) === 0;
}
