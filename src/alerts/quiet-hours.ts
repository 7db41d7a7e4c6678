import type { AlertSettings } from "./settings.ts";

type QuietHours = NonNullable<AlertSettings["quietHours"]>;

const minuteMs = 60_000;
const dayMinutes = 1_440;
const weekdays = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] as const;

/** Until when what is not urgent waits; null where it need not. Pure. */
export function quietUntil(quiet: QuietHours | null, timeZone: string, now: Date): Date | null {
  if (quiet === null) return null;
  const { minute, weekday } = localMinute(timeZone, now);
  const [from, to] = [minutesOf(quiet.from), minutesOf(quiet.to)];
  const began = beganOn(minute, weekday, { from, to });
  if (began === null || !quiet.days.some((day) => day === weekdays[began])) return null;
  const left = (to - minute + dayMinutes) % dayMinutes || dayMinutes;
  return nextLocalMinute(timeZone, now, left, to);
}

/** The next time after `now` at which it is `timeOfDay` (`08:00`) in the zone. Pure. */
export function nextTimeOfDay(timeOfDay: string, timeZone: string, now: Date): Date {
  const to = minutesOf(timeOfDay);
  const { minute } = localMinute(timeZone, now);
  const left = (to - minute + dayMinutes) % dayMinutes || dayMinutes;
  return nextLocalMinute(timeZone, now, left, to);
}

function nextLocalMinute(timeZone: string, now: Date, left: number, to: number): Date {
  const start = Math.floor(now.getTime() / minuteMs) * minuteMs;
  const reached = new Date(start + left * minuteMs);
  // The clocks may change meanwhile, by an hour at most.
  const off = to - localMinute(timeZone, reached).minute;
  const wrapped =
    off > dayMinutes / 2 ? off - dayMinutes : off < -dayMinutes / 2 ? off + dayMinutes : off;
  return new Date(reached.getTime() + wrapped * minuteMs);
}

/** The weekday on which the quiet hours began that `minute` lies in; null where it lies in none. */
function beganOn(
  minute: number,
  weekday: number,
  { from, to }: { from: number; to: number },
): number | null {
  if (from <= to) return minute >= from && minute < to ? weekday : null;
  if (minute >= from) return weekday;
  return minute < to ? (weekday + 6) % 7 : null;
}

const minutesOf = (timeOfDay: string): number =>
  Number(timeOfDay.slice(0, 2)) * 60 + Number(timeOfDay.slice(3));

function localMinute(timeZone: string, at: Date): { minute: number; weekday: number } {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone,
    hourCycle: "h23",
    hour: "numeric",
    minute: "numeric",
    weekday: "short",
  });
  const parts = new Map(format.formatToParts(at).map(({ type, value }) => [type, value]));
  const weekday = (parts.get("weekday") ?? "").toLowerCase();
  return {
    minute: Number(parts.get("hour")) * 60 + Number(parts.get("minute")),
    weekday: weekdays.findIndex((day) => day === weekday),
  };
}
