import type { LocalMinute, LocalTime } from "../platform/local-time.ts";
import { localTimeIn, momentsOf, timeText } from "../platform/local-time.ts";
import type { AlertSettings } from "./settings.ts";

type QuietHours = NonNullable<AlertSettings["quietHours"]>;

const weekdays = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] as const;

/** Until when what is not urgent waits; null where it need not. Pure. */
export function quietUntil(quiet: QuietHours | null, timeZone: string, now: Date): Date | null {
  if (quiet === null) return null;
  const local = localTimeIn(timeZone)(now);
  const began = beganOn(timeText(local), local.weekday, quiet);
  if (began === null || !quiet.days.some((day) => day === weekdays[began])) return null;
  const ends = [0, 1].flatMap((days) => momentsOf(onDay(quiet.to, local, days), timeZone));
  return ends.find((end) => end > now) ?? null;
}

/** The last time at or before `now` at which it became `timeOfDay` (`08:00`) in the zone: once a day. Pure. */
export function lastTimeOfDay(timeOfDay: string, timeZone: string, now: Date): Date {
  const local = localTimeIn(timeZone)(now);
  const [today = now] = momentsOf(onDay(timeOfDay, local, 0), timeZone);
  const [yesterday = now] = momentsOf(onDay(timeOfDay, local, -1), timeZone);
  return today <= now ? today : yesterday;
}

const onDay = (
  timeOfDay: string,
  { year, month, day }: LocalTime,
  daysLater: number,
): LocalMinute => {
  const [hour, minute] = [Number(timeOfDay.slice(0, 2)), Number(timeOfDay.slice(3))];
  return { year, month, day: day + daysLater, hour, minute };
};

/** The weekday on which the quiet hours began that a time of day lies in; null where it lies in none. */
function beganOn(time: string, weekday: number, { from, to }: QuietHours): number | null {
  if (from <= to) return time >= from && time < to ? weekday : null;
  if (time >= from) return weekday;
  return time < to ? (weekday + 6) % 7 : null;
}
