import type { HourOfAnswers } from "../../../core/receiver/counters.ts";
import type { Column, Figure } from "../../../app/figures/figure.ts";
import { dayIn, localTimeIn, timeText } from "../../../platform/local-time.ts";

const hourMs = 3_600_000;

/** The last hours until now, each with its answers, also those without any; the one that has begun comes last. */
function lastHours(found: readonly HourOfAnswers[], now: Date, n: number): HourOfAnswers[] {
  const last = Math.floor(now.getTime() / hourMs);
  const known = new Map(found.map((hour) => [Math.floor(hour.at.getTime() / hourMs), hour]));
  return Array.from({ length: n }, (_, back) => {
    const hour = last - n + 1 + back;
    return { at: new Date(hour * hourMs), taken: 0, refused: 0, ...known.get(hour) };
  });
}

/** How many webhooks were stored in each of the last 24 hours, the one that has begun last. */
export const takenByHour = (hours: readonly HourOfAnswers[], now: Date): number[] =>
  lastHours(hours, now, 24).map(({ taken }) => taken);

/**
 * The requests of the last 24 hours and of the last 7 days, by hour: what was stored, and above it what was refused.
 * None where there were none.
 */
export function arrivalFigures(
  hours: readonly HourOfAnswers[],
  { now, timeZone }: { now: Date; timeZone: string },
): Figure[] {
  const local = localTimeIn(timeZone);
  const week = lastHours(hours, now, 7 * 24);
  if (week.every(({ taken, refused }) => taken + refused === 0)) return [];
  const figure = (title: string, shown: readonly HourOfAnswers[], labelOf: (at: Date) => string | null): Figure => ({
    kind: "columns",
    title,
    describes: describe(shown, timeZone),
    axis: (value) => (Number.isInteger(value) ? value.toLocaleString("en-GB") : ""),
    columns: shown.map(({ at, taken, refused }): Column => ({
      label: labelOf(at),
      parts: [
        { value: taken, tone: "base" },
        { value: refused, tone: "loss" },
      ],
      note: null,
      mark: null,
    })),
    isHalf: true,
    thresholds: [],
    legend: [
      { tone: "base", label: "stored, new or a repeat" },
      { tone: "loss", label: "refused" },
    ],
  });
  return [
    figure("The last 24 hours, by hour", week.slice(-24), (at) =>
      local(at).hour % 6 === 0 ? timeText(local(at)) : null,
    ),
    figure("The last 7 days, by hour", week, (at) => (local(at).hour === 0 ? dayIn(timeZone, at).slice(5) : null)),
  ];
}

function describe(hours: readonly HourOfAnswers[], timeZone: string): string {
  const local = localTimeIn(timeZone);
  const most = (of: "taken" | "refused") => {
    const hour = hours.reduce<HourOfAnswers | null>((a, b) => (a === null || b[of] > a[of] ? b : a), null);
    return hour === null || hour[of] === 0
      ? ""
      : `, the most in an hour (${hour[of].toLocaleString("en-GB")}) from ${dayIn(timeZone, hour.at).slice(5)} ${timeText(local(hour.at))} on`;
  };
  const total = (of: "taken" | "refused") => hours.reduce((sum, hour) => sum + hour[of], 0).toLocaleString("en-GB");
  return (
    `${total("taken")} stored${most("taken")}; ${total("refused")} refused${most("refused")}. ` +
    `Times in ${timeZone}.`
  );
}
