import { describe, expect, test } from "vitest";
import type { ColumnFigure, Figure } from "../../src/app/figures/figure.ts";
import { ratioFigures } from "../../src/parts/browse/chargebacks/ratio-figure.ts";
import { arrivalFigures } from "../../src/parts/browse/deliveries/arrivals.ts";
import { lastMondays, weekFigures } from "../../src/parts/browse/dunning/weeks.ts";
import { driftByNight, driftFigures } from "../../src/parts/reconcile/pages/drift-figure.ts";

const columnsOf = (figure: Figure | undefined): ColumnFigure["columns"] =>
  figure?.kind === "columns" ? figure.columns : [];
const valuesOf = (figure: Figure | undefined): string[] =>
  columnsOf(figure).map(({ parts }) => parts.map(({ value }) => value).join("+"));
const labelsOf = (figure: Figure | undefined): string[] => columnsOf(figure).flatMap(({ label }) => label ?? []);

describe("the requests by hour", () => {
  const now = new Date("2026-11-22T12:30:00Z");
  const at = (hour: string) => new Date(`2026-11-${hour}:00:00Z`);

  test("have a column for each hour, also where nothing came, and the hour that has begun comes last", () => {
    const [day, week] = arrivalFigures(
      [
        { at: at("15T12"), taken: 9, refused: 9 },
        { at: at("15T13"), taken: 1, refused: 2 },
        { at: at("21T13"), taken: 3, refused: 0 },
        { at: at("22T12"), taken: 5, refused: 4 },
      ],
      { now, timeZone: "UTC" },
    );
    expect(valuesOf(day)).toEqual(["3+0", ...Array<string>(22).fill("0+0"), "5+4"]);
    expect(valuesOf(week).filter((value) => value !== "0+0")).toEqual(["1+2", "3+0", "5+4"]);
    expect(week?.describes).toBe(
      "9 stored, the most in an hour (5) from 11-22 12:00 on; 6 refused, the most in an hour (4) from 11-22 12:00 on. " +
        "Times in UTC.",
    );
  });

  test("are labelled by hours and days of the zone", () => {
    const [day, week] = arrivalFigures([{ at: at("22T12"), taken: 1, refused: 0 }], { now, timeZone: "Europe/Berlin" });
    expect(labelsOf(day)).toEqual(["18:00", "00:00", "06:00", "12:00"]);
    expect(labelsOf(week)).toEqual(["11-16", "11-17", "11-18", "11-19", "11-20", "11-21", "11-22"]);
  });

  test("are not drawn where there were none", () => {
    expect(arrivalFigures([{ at: at("01T00"), taken: 1, refused: 1 }], { now, timeZone: "UTC" })).toEqual([]);
  });
});

describe("chargebacks against thresholds", () => {
  const visa = { brand: "visa", programme: "VAMP", disputes: 30, limit: 100, ratio: 0.4, isOver: false };

  test("are in percent of each threshold, and red from where it is near", () => {
    const [figure] = ratioFigures([
      visa,
      { ...visa, programme: "near", disputes: 80 },
      { ...visa, programme: "over", disputes: 250, ratio: null, isOver: true },
    ]);
    expect(figure?.kind === "bars" && figure.bars.map(({ to, value, tone }) => [to, value, tone])).toEqual([
      [30, "30 of 100 · 0.4 %", "base"],
      [80, "80 of 100 · 0.4 %", "loss"],
      [250, "250 of 100", "loss"],
    ]);
    expect(figure).toMatchObject({ threshold: { value: 100 } });
  });

  test("are not drawn where no network counts any", () => {
    expect(ratioFigures([])).toEqual([]);
  });
});

describe("drift by night", () => {
  const now = new Date("2026-11-22T12:00:00Z");
  const totals = (healed: number, left: number) => {
    const none = { slices: {}, pages: 0, rows: {}, verdicts: {}, confirmed: {}, calls: 0, acknowledged: {} };
    return { ...none, amountAtRiskMinor: {}, otherFindings: {}, healed: { behind: healed }, left: { mismatch: left } };
  };
  const run = (id: number, at: string, found: [healed: number, left: number] | null) => ({
    id,
    state: "complete" as const,
    startedAt: new Date(`2026-11-${at}:00Z`),
    isInitialImport: id === 1,
    totals: found === null ? null : totals(...found),
  });
  const nightsOf = (...runs: ReturnType<typeof run>[]) => driftByNight(runs, { now, timeZone: "UTC" });

  test("is what the runs of a day healed, and what the last of them left; the import of everything does not count", () => {
    const nights = nightsOf(
      run(1, "18T01:00", [900, 900]),
      run(4, "21T05:00", [3, 1]),
      run(3, "21T01:00", [2, 4]),
      run(2, "19T01:00", [0, 0]),
      run(5, "22T01:00", null),
    );
    expect(nights.map(({ day, healed, left, runs }) => [day.slice(8), healed, left, runs])).toEqual([
      ["19", 0, 0, "complete"],
      ["20", 0, 0, "none"],
      ["21", 5, 1, "complete"],
      ["22", 0, 0, "complete"],
    ]);
    const [figure] = driftFigures(nights);
    expect(valuesOf(figure)).toEqual(["0+0", "0+0", "5+1", "0+0"]);
    expect(columnsOf(figure).map(({ mark }) => mark?.meaning ?? null)).toEqual([null, "no run", null, null]);
  });

  test("is not drawn where there was none and every night had its run; today's may be to come", () => {
    expect(driftFigures(nightsOf(run(2, "20T01:00", [0, 0]), run(3, "21T01:00", [0, 0])))).toEqual([]);
    expect(driftFigures(nightsOf(run(2, "19T01:00", [0, 0]), run(3, "21T01:00", [0, 0])))).toHaveLength(1);
    expect(driftFigures([])).toEqual([]);
  });

  test("begins with the first night that had a run, of 30 at most", () => {
    expect(nightsOf(run(2, "01T01:00", [1, 0]))).toHaveLength(22);
    expect(
      driftByNight([run(2, "01T01:00", [1, 0])], { now: new Date("2026-12-22T12:00:00Z"), timeZone: "UTC" }),
    ).toEqual([]);
  });
});

describe("declined renewals by week", () => {
  test("are drawn by what became of them, for the last twelve weeks of the zone", () => {
    const mondays = lastMondays(new Date("2026-11-22T23:30:00Z"), "UTC");
    expect([mondays.length, mondays[0], mondays.at(-1)]).toEqual([12, "2026-08-31", "2026-11-16"]);
    expect(lastMondays(new Date("2026-11-22T23:30:00Z"), "Europe/Berlin").at(-1)).toBe("2026-11-23");
    const [figure] = weekFigures(
      mondays.map((monday, n) => ({
        monday,
        recovered: n === 0 ? 3 : 0,
        inProgress: n === 11 ? 2 : 0,
        lost: n === 0 ? 1 : 0,
      })),
    );
    expect(valuesOf(figure).filter((value) => value !== "0+0+0")).toEqual(["3+0+1", "0+2+0"]);
    expect(figure?.describes).toContain(
      "6 renewals were first declined in 12 weeks: 3 recovered, 2 in progress, 1 lost",
    );
  });

  test("are not drawn where there were none", () => {
    expect(weekFigures([{ monday: "2026-11-16", recovered: 0, inProgress: 0, lost: 0 }])).toEqual([]);
  });
});
