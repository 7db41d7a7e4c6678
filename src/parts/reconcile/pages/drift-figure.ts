import type { Column, Figure } from "../../../app/figures/figure.ts";
import { dayIn } from "../../../platform/local-time.ts";
import { counted } from "../../../platform/readable-text.ts";
import { sum } from "../runs/finish-run.ts";
import type { RunRow } from "../runs/list-runs.ts";

export const drawnNights = 30;
const dayMs = 86_400_000;

type DrawnRun = Pick<RunRow, "id" | "state" | "startedAt" | "isInitialImport" | "totals">;

/** The runs of a local day. */
interface Night {
  day: string;
  healed: number;
  /** Still open after the last run of the day. */
  left: number;
  /** `none`: no run began; `incomplete`: no run of the day proved everything. */
  runs: "none" | "incomplete" | "complete";
}

/**
 * The drift that the runs of each of the last 30 days healed and left, from the first of these days with a run on. The
 * import into an empty mirror finds everything, so it is left out.
 */
export function driftByNight(runs: readonly DrawnRun[], { now, timeZone }: { now: Date; timeZone: string }): Night[] {
  const own = runs
    .filter(({ isInitialImport }) => !isInitialImport)
    .map((run) => ({ ...run, day: dayIn(timeZone, run.startedAt) }));
  const today = Date.parse(`${dayIn(timeZone, now)}T00:00Z`);
  const days = Array.from({ length: drawnNights }, (_, n) =>
    new Date(today - (drawnNights - 1 - n) * dayMs).toISOString().slice(0, 10),
  );
  const first = days.findIndex((day) => own.some((run) => run.day === day));
  if (first < 0) return [];
  return days.slice(first).map((day) =>
    nightOf(
      day,
      own.filter((run) => run.day === day),
    ),
  );
}

function nightOf(day: string, runs: readonly DrawnRun[]): Night {
  const ended = runs.flatMap(({ id, totals }) => (totals === null ? [] : [{ id, totals }])).sort((a, b) => a.id - b.id);
  return {
    day,
    healed: ended.reduce((all, { totals }) => all + sum(totals.healed), 0),
    left: sum(ended.at(-1)?.totals.left ?? {}),
    runs:
      runs.length === 0
        ? "none"
        : runs.every(({ state }) => state === "incomplete" || state === "abandoned")
          ? "incomplete"
          : "complete",
  };
}

const marks: Readonly<Record<Night["runs"], Column["mark"]>> = {
  none: { sign: "×", meaning: "no run" },
  incomplete: { sign: "!", meaning: "no run proved everything" },
  complete: null,
};

/** None where every night had a run and no drift. Today's run may be still to come. */
export function driftFigures(nights: readonly Night[]): Figure[] {
  const today = nights.at(-1)?.day;
  const isMissing = ({ day, runs }: Night): boolean => runs === "none" && day !== today;
  if (nights.every((night) => night.healed + night.left === 0 && night.runs !== "incomplete" && !isMissing(night))) {
    return [];
  }
  const healed = nights.reduce((all, night) => all + night.healed, 0);
  return [
    {
      kind: "columns",
      title: "Drift by night",
      describes:
        `${counted(nights.length, "night")}: ${counted(healed, "finding was", "findings were")} healed, ` +
        `${nights.findLast(({ runs }) => runs !== "none")?.left ?? 0} left open by the last run; ` +
        `${counted(nights.filter(isMissing).length, "night")} without a run.`,
      axis: (value) => (Number.isInteger(value) ? value.toLocaleString("en-GB") : ""),
      columns: nights.map((night, n) => ({
        label: (nights.length - 1 - n) % 7 === 0 ? night.day.slice(5) : null,
        parts: [
          { value: night.healed, tone: "gain" },
          { value: night.left, tone: "loss" },
        ],
        note: null,
        mark: night.runs === "none" && !isMissing(night) ? null : marks[night.runs],
      })),
      isHalf: true,
      thresholds: [],
      legend: [
        { tone: "gain", label: "healed" },
        { tone: "loss", label: "left open" },
      ],
    },
  ];
}
