/** A wall clock's reading. `year` is that of the Gregorian calendar, `weekday` is 0 on Sunday. */
export interface LocalTime extends LocalMinute {
  second: number;
  weekday: number;
}

/** A minute of a wall clock; `month` is 1 in January. */
export interface LocalMinute extends LocalDay {
  hour: number;
  minute: number;
}

export interface LocalDay {
  year: number;
  month: number;
  day: number;
}

const dayMs = 86_400_000;
const weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/** One for each zone: creating one costs as much as ten readings. */
const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(timeZone: string): Intl.DateTimeFormat {
  let format = formats.get(timeZone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat("en-US", {
      timeZone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
      weekday: "short",
    });
    formats.set(timeZone, format);
  }
  return format;
}

/** Makes a reader of a zone's wall clock (IANA name). */
export function localTimeIn(timeZone: string): (at: Date) => LocalTime {
  const format = formatOf(timeZone);
  return (at) => {
    const parts = new Map(format.formatToParts(at).map(({ type, value }) => [type, value]));
    const number = (type: Intl.DateTimeFormatPartTypes) => Number(parts.get(type));
    return {
      year: number("year"),
      month: number("month"),
      day: number("day"),
      hour: number("hour"),
      minute: number("minute"),
      second: number("second"),
      weekday: weekdays.indexOf(parts.get("weekday") ?? ""),
    };
  };
}

/** The day of a moment in a zone, `2026-03-04`. */
export const dayIn = (timeZone: string, at: Date): string => dayText(localTimeIn(timeZone)(at));

/** `2026-03-04`. */
export const dayText = ({ year, month, day }: LocalDay): string =>
  `${String(year).padStart(4, "0")}-${twoDigits(month)}-${twoDigits(day)}`;

/** `15:30`. */
export const timeText = ({ hour, minute }: LocalMinute): string => `${twoDigits(hour)}:${twoDigits(minute)}`;

const twoDigits = (n: number): string => String(n).padStart(2, "0");

/**
 * The instants at which the wall clock of a zone shows a minute, earliest first: one; two where an hour is repeated. A
 * skipped minute is never shown and is shifted by the jump: 2:30 gives 3:30 when the clock jumps from 2:00 to 3:00.
 * Days and months out of range roll over, as in `Date.UTC`.
 */
export function instantsOf(local: LocalMinute, timeZone: string): Date[] {
  const read = localTimeIn(timeZone);
  const wallMs = msOf({ ...local, second: 0 });
  const offsetAt = (ms: number) => msOf(read(new Date(ms))) - ms;
  // No offset is more than a day, so a jump of the clock near this minute lies between these two.
  const [before, after] = [offsetAt(wallMs - dayMs), offsetAt(wallMs + dayMs)];
  const candidates = [...new Set([wallMs - before, wallMs - after])];
  const shown = candidates.filter((ms) => ms + offsetAt(ms) === wallMs);
  return (shown.length > 0 ? shown : [wallMs - before]).sort((a, b) => a - b).map((ms) => new Date(ms));
}

/**
 * The first moment of a day in a zone. Where the clock skips midnight, that is when it jumps into the day; a day that a
 * zone left out begins with the next one. Days and months out of range roll over.
 */
export function beginningOfDay(day: LocalDay, timeZone: string): Date {
  const read = localTimeIn(timeZone);
  const wanted = msOf({ ...day, hour: 0, minute: 0, second: 0 });
  const isBefore = (ms: number) => msOf(read(new Date(ms))) < wanted;
  // Where midnight is skipped and is not the beginning of the jump, this is some minutes after it.
  let first = instantsOf({ ...day, hour: 0, minute: 0 }, timeZone)[0]?.getTime() ?? wanted;
  if (isBefore(first - 1)) return new Date(first);
  for (let last = first - dayMs; first - last > 1;) {
    const middle = Math.floor((first + last) / 2);
    if (isBefore(middle)) last = middle;
    else first = middle;
  }
  return new Date(first);
}

const msOf = ({ year, month, day, hour, minute, second }: Omit<LocalTime, "weekday">): number =>
  Date.UTC(year, month - 1, day, hour, minute, second);
