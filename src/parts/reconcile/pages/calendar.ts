import type { Resource } from "../../../core/mirror/snapshot.ts";
import { type LocalDay, type LocalTime, beginningOfDay, dayText, localTimeIn } from "../../../platform/local-time.ts";
import type { Gap } from "../coverage/coverage.ts";
import { type ListProof, type ProvedDay, type ProvedPart, dayOf, unprovedOf } from "../coverage/proof.ts";
import { boundText } from "../coverage/slice.ts";

export interface CalendarMonth {
  /** `November 2026`. */
  name: string;
  /** Months as written in the address; null where there is nothing to show. */
  earlier: string;
  later: string | null;
  resources: readonly Resource[];
  days: readonly CalendarDay[];
  /** The gaps in the month until now. */
  gaps: readonly Gap[];
  /** From here on, objects created in the month are left to the next run in at least one list; null: in none. */
  awaitedFrom: Date | null;
  /** Apart from the gaps, the month is proved until here; null: at least one list has no proof in it. */
  provedUntil: Date | null;
  /** Service time. */
  isOver: boolean;
}

export interface CalendarDay {
  /** `Mon 3`. */
  name: string;
  /** From Monday, 0, on. */
  weekday: number;
  /** `2026-11-03`. */
  date: string;
  /** In the order of the month's resources. */
  lists: readonly ProvedDay[];
}

type Month = Pick<LocalTime, "year" | "month">;

/** The month that the address names; the month of `now` where it names none, or a future one. */
export function monthOf(text: string | null, now: Date, timeZone: string): Month {
  const { year, month } = localTimeIn(timeZone)(now);
  const [, y, m] = /^([12]\d{3})-(0[1-9]|1[0-2])$/.exec(text ?? "") ?? [];
  const named = { year: Number(y), month: Number(m) };
  const isPast = named.year < year || (named.year === year && named.month <= month);
  return y !== undefined && isPast ? named : { year, month };
}

/** When a month begins, and when the next one does. */
export const boundsOf = ({ year, month }: Month, timeZone: string): { from: Date; before: Date } => ({
  from: beginningOfDay({ year, month, day: 1 }, timeZone),
  before: beginningOfDay({ year, month: month + 1, day: 1 }, timeZone),
});

/**
 * The proofs of a month that has begun. `proofs` cover the whole history, since a part of a gap does not show its age;
 * `parts` that overlap the month, the newest read first. `now` is service time.
 */
export function calendarOf(
  { year, month }: Month,
  {
    proofs,
    parts,
    now,
    timeZone,
  }: { proofs: readonly ListProof[]; parts: readonly ProvedPart[]; now: Date; timeZone: string },
): CalendarMonth {
  const { from: start, before: end } = boundsOf({ year, month }, timeZone);
  const isOver = end <= now;
  const until = isOver ? end : now;
  const lists = proofs.map((proof) => ({
    resource: proof.resource,
    ...unprovedOf(proof, now),
  }));
  const awaited = lists.flatMap(({ awaitedFrom }) =>
    awaitedFrom === null || awaitedFrom >= until ? [] : [awaitedFrom.getTime()],
  );
  const awaitedFrom = awaited.length === 0 ? null : new Date(Math.min(...awaited));
  const days = daysOf({ year, month });
  const begins = [...days, days.length + 1].map((day) => beginningOfDay({ year, month, day }, timeZone));
  return {
    name: monthName({ year, month }),
    earlier: monthText({ year, month: month - 1 }),
    later: isOver ? monthText({ year, month: month + 1 }) : null,
    resources: lists.map(({ resource }) => resource),
    days: days.map((day, n): CalendarDay => ({
      name: `${weekdays[weekdayOf({ year, month, day })] ?? ""} ${day}`,
      weekday: weekdayOf({ year, month, day }),
      date: dayText({ year, month, day }),
      lists: lists.map((list) =>
        dayOf(parts, {
          resource: list.resource,
          from: begins[n] ?? start,
          before: begins[n + 1] ?? end,
          now,
          awaitedFrom: list.awaitedFrom,
        }),
      ),
    })),
    gaps: lists.flatMap(({ gaps }) => cut(gaps, boundText(start), boundText(until))),
    awaitedFrom,
    provedUntil: awaitedFrom === null ? until : awaitedFrom > start ? awaitedFrom : null,
    isOver,
  };
}

/** Cuts gaps to the span between two times. */
const cut = (gaps: readonly Gap[], start: string, until: string): Gap[] =>
  gaps.flatMap(({ resource, from, before }) => {
    const part = {
      resource,
      from: from === null || from < start ? start : from,
      before: before === null || before > until ? until : before,
    };
    return part.from < part.before ? [part] : [];
  });

export const weekdays = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

const weekdayOf = ({ year, month, day }: LocalDay): number =>
  (new Date(Date.UTC(year, month - 1, day)).getUTCDay() + 6) % 7;

const daysOf = ({ year, month }: Month): number[] =>
  Array.from({ length: new Date(Date.UTC(year, month, 0)).getUTCDate() }, (_, n) => n + 1);

/** `2026-11`; a month out of range rolls over. */
function monthText({ year, month }: Month): string {
  return new Date(Date.UTC(year, month - 1, 1)).toISOString().slice(0, 7);
}

const monthName = ({ year, month }: Month): string =>
  new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", month: "long", year: "numeric" }).format(
    Date.UTC(year, month - 1, 1),
  );
