// Timestamps of the service are compared as text in one fixed form. A JavaScript `Date` keeps milliseconds only, so two
// states written in the same millisecond would look simultaneous.

const dateTime = /^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?([Zz]|[+-]\d{2}(?::?\d{2})?)$/;

/** A short cut for the form that JavaScript and the service write, on the days that every month has (1 to 28). */
const usualDateTime =
  /^(?!0000)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z$/;

const daysInMonth = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const;

/**
 * The fixed-width UTC form `YYYY-MM-DDTHH:MM:SS.ffffffZ` of an ISO 8601 date-time, or null.
 *
 * Two results compare as times when compared as strings. Fractions beyond microseconds, which Postgres' `timestamptz`
 * cannot hold, are cut off, never rounded. Null for anything that is not an instant between the years 0001 and 9999:
 * dates without a time, times without an offset (their meaning would depend on this machine), impossible dates such as
 * 30 February, leap seconds.
 */
export function canonicalTimestamp(iso: string): string | null {
  if (usualDateTime.test(iso)) return `${iso.slice(0, -1)}000Z`;
  const match = dateTime.exec(iso);
  if (match === null) return null;
  const [, year = "", month = "", day = "", hour = "", minute = "", second = ""] = match;
  if (!isCalendarDate(Number(year), Number(month), Number(day))) return null;
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return null;

  const fraction = (match[7] ?? "").slice(0, 6).padEnd(6, "0");
  const offsetMinutes = parseOffset(match[8] ?? "");
  if (offsetMinutes === null) return null;
  if (offsetMinutes === 0) {
    return `${year}-${month}-${day}T${hour}:${minute}:${second}.${fraction}Z`;
  }
  const shifted = new Date(0);
  shifted.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  shifted.setUTCHours(Number(hour), Number(minute) - offsetMinutes, Number(second));
  const utcYear = shifted.getUTCFullYear();
  if (utcYear < 1 || utcYear > 9999) return null;
  return `${shifted.toISOString().slice(0, 19)}.${fraction}Z`;
}

function isCalendarDate(year: number, month: number, day: number): boolean {
  if (year < 1 || month < 1 || month > 12 || day < 1) return false;
  const leapYear = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
  return day <= (month === 2 && leapYear ? 29 : (daysInMonth[month - 1] ?? 0));
}

function parseOffset(offset: string): number | null {
  if (offset === "Z" || offset === "z") return 0;
  const hours = Number(offset.slice(1, 3));
  const minutes = Number(offset.slice(3).replace(":", ""));
  if (hours > 23 || minutes > 59) return null;
  return (offset.startsWith("-") ? -1 : 1) * (hours * 60 + minutes);
}

/** Reads an instant that a person typed, to the millisecond; null if the text is not one. */
export function readInstant(text: string): Date | null {
  const canonical = canonicalTimestamp(text);
  return canonical === null ? null : new Date(canonical);
}
