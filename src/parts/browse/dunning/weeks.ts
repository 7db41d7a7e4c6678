import type { Figure } from "../../../app/figures/figure.ts";
import type { WeekOfDeclines } from "../../../core/mirror/dunning/funnel.ts";
import { dayIn } from "../../../platform/local-time.ts";
import { counted } from "../../../platform/readable-text.ts";

const shownWeeks = 12;
const dayMs = 86_400_000;

/** The Mondays of the last weeks, that of the week of `now` last. */
export function lastMondays(now: Date, timeZone: string): string[] {
  const today = new Date(`${dayIn(timeZone, now)}T00:00Z`);
  const monday = today.getTime() - ((today.getUTCDay() + 6) % 7) * dayMs;
  return Array.from({ length: shownWeeks }, (_, n) =>
    new Date(monday - (shownWeeks - 1 - n) * 7 * dayMs).toISOString().slice(0, 10),
  );
}

/** Declined renewals by the week of their first decline, and what became of them; none where there were none. */
export function weekFigures(weeks: readonly WeekOfDeclines[]): Figure[] {
  const sum = (of: "recovered" | "inProgress" | "lost") => weeks.reduce((all, week) => all + week[of], 0);
  const [recovered, inProgress, lost] = [sum("recovered"), sum("inProgress"), sum("lost")];
  const declined = recovered + inProgress + lost;
  if (declined === 0) return [];
  return [
    {
      kind: "columns",
      title: "Renewals by the week of their first decline",
      describes:
        `${counted(declined, "renewal was", "renewals were")} first declined in ${weeks.length} weeks: ` +
        `${recovered} recovered, ${inProgress} in progress, ${lost} lost. Weeks from Monday on.`,
      axis: (value) => (Number.isInteger(value) ? value.toLocaleString("en-GB") : ""),
      columns: weeks.map((week, n) => ({
        label: (weeks.length - 1 - n) % 2 === 0 ? week.monday.slice(5) : null,
        parts: [
          { value: week.recovered, tone: "gain" },
          { value: week.inProgress, tone: "other" },
          { value: week.lost, tone: "loss" },
        ],
        note: null,
        mark: null,
      })),
      isHalf: true,
      thresholds: [],
      legend: [
        { tone: "gain", label: "recovered" },
        { tone: "other", label: "in progress" },
        { tone: "loss", label: "lost" },
      ],
    },
  ];
}
