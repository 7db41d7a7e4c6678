import { describe, expect, test } from "vitest";
import type { ColumnFigure, Figure } from "../../src/app/figures/figure.ts";
import { arrivalFigures } from "../../src/parts/browse/deliveries/arrivals.ts";

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
