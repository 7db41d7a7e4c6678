import { counted } from "../../../../platform/readable-text.ts";
import { type Exponents, amountText, shortAmount } from "../../base/currencies.ts";
import type { Column, Figure } from "../../../../app/figures/figure.ts";
import { type RowByColumn, groupBy, sumOf } from "../../base/figure.ts";
import { type Report, count, day, money, number, percent, summedCount, summedMoney, text } from "../../base/report.ts";

export const dailyControl: Report = {
  name: "daily-control",
  explains: "whether count and sum of each day in the mirror equal those of the service's list",
  source: "daily_control",
  sql: new URL("./daily-control.sql", import.meta.url),
  columns: [
    ...day("day"),
    ...text("currency", "type", "status"),
    ...count("service_count"),
    ...money("service_sum"),
    ...summedCount("mirror_count"),
    ...summedMoney("mirror_sum"),
    ...count("difference_count"),
    ...money("difference_sum"),
    ...percent("coverage_percent"),
    ...number("run"),
    ...text("outcome"),
  ],
  orderBy: "day, currency, type, status",
  tellsUnknown: true,
  failsOn: "differs",
  figures: controlTotals,
};

/** A longer period is drawn by month, so that a column stays wide enough to see. */
const mostDays = 100;

const marks: readonly { outcome: string; sign: string; meaning: string }[] = [
  { outcome: "differs", sign: "×", meaning: "differs from the service" },
  { outcome: "not read", sign: "?", meaning: "not read from the service" },
  { outcome: "changed since", sign: "~", meaning: "changed since it was read" },
];

/** The mirror's sums of each day, marked where the service's list differs; one figure for each currency. */
function controlTotals(rows: readonly RowByColumn[], exponents: Exponents): Figure[] {
  return groupBy(rows, "currency").map(([currency, own]): Figure => {
    const byDay = everyDay(groupBy(own, "day"));
    const isByDay = byDay.length <= mostDays;
    const byMonth = () =>
      groupBy(
        own.map((row) => ({ ...row, day: row["day"]?.slice(0, 7) ?? "" })),
        "day",
      );
    const columns = (isByDay ? byDay : byMonth()).map(([label, then]) => columnOf(label, then));
    const marked = columns.filter(({ mark }) => mark !== null).length;
    return {
      kind: "columns",
      title: `Control totals by ${isByDay ? "day" : "month"}, ${currency.toUpperCase()}`,
      describes:
        `${counted(columns.length, isByDay ? "day" : "month")}, ` +
        `${amountText(sumOf(own, "mirror_sum"), currency, exponents)} of transactions in the mirror; ` +
        `${markedText(marked)}.`,
      axis: (value) => shortAmount(value, currency, exponents),
      columns,
      thresholds: [],
      legend: [
        { tone: "base", label: "sales that were captured" },
        { tone: "loss", label: "refunds" },
        { tone: "other", label: "failed, voided and all others" },
      ],
    };
  });
}

const markedText = (marked: number): string =>
  marked === 0
    ? "all equal the service's list"
    : `${marked} marked because of a difference from the service's list, a gap or a later change`;

/** Adds the days between that have no row, so that a gap in time shows as a gap. */
function everyDay(days: readonly [string, RowByColumn[]][]): [string, RowByColumn[]][] {
  const known = new Map(days);
  const [first, last] = [days[0]?.[0] ?? "", days.at(-1)?.[0] ?? ""];
  const all: [string, RowByColumn[]][] = [];
  for (let day = first; day !== "" && day <= last; day = dayAfter(day)) {
    all.push([day, known.get(day) ?? []]);
  }
  return all;
}

const dayAfter = (day: string): string =>
  new Date(Date.parse(`${day}T00:00:00Z`) + 86_400_000).toISOString().slice(0, 10);

/** The same rule as `reports.is_captured`, for rows of a report. */
export const isCaptured = ({ type, status }: RowByColumn): boolean =>
  type === "sale" && (status === "succeeded" || status === "chargeback");

/** The same rule as `reports.is_refunded`. */
export const isRefunded = ({ type, status }: RowByColumn): boolean => type === "refund" && status === "succeeded";

function columnOf(label: string, rows: readonly RowByColumn[]): Column {
  const of = (isWanted: (row: RowByColumn) => boolean) => Number(sumOf(rows.filter(isWanted), "mirror_sum"));
  return {
    label,
    parts: [
      { value: of(isCaptured), tone: "base" },
      { value: of(isRefunded), tone: "loss" },
      { value: of((row) => !isCaptured(row) && !isRefunded(row)), tone: "other" },
    ],
    note: null,
    mark: marks.find(({ outcome }) => rows.some((row) => row["outcome"] === outcome)) ?? null,
  };
}
