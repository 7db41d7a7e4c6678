import type { Figure } from "../../../../app/figures/figure.ts";
import { type RowByColumn, groupBy } from "../../base/figure.ts";
import { type Report, count, month, percent, text } from "../../base/report.ts";

export const networkMonitor: Report = {
  name: "network-monitor",
  explains: "how far each card brand is from its chargeback programme (a lower bound: fraud reports are not known)",
  source: "network_monitor",
  sql: new URL("./network-monitor.sql", import.meta.url),
  columns: [
    ...month("month"),
    ...text("brand", "programme"),
    ...count("sales", "disputes"),
    ...percent("ratio_percent", "threshold_percent"),
    ...count("threshold_disputes", "headroom"),
    ...text("outcome"),
  ],
  orderBy: "month, brand, programme",
  tellsUnknown: true,
  takesRegion: true,
  figures: networkRatios,
};

/**
 * The chargeback ratio of each month against the threshold of a programme; brands without a programme have no figure.
 */
function networkRatios(rows: readonly RowByColumn[]): Figure[] {
  return groupBy(
    rows.filter((row) => row["programme"] !== null),
    "brand",
  ).flatMap(([brand, ofBrand]) =>
    groupBy(ofBrand, "programme").map(([programme, own]): Figure => {
      const last = own.at(-1);
      const threshold = Number(last?.["threshold_percent"] ?? 0);
      return {
        kind: "columns",
        title: `${nameOf(brand)}, ${programme}`,
        describes:
          `Disputes in percent of sales, by month; the last month is at ${last?.["ratio_percent"] ?? "unknown"} %. The ` +
          `threshold is ${threshold} % and, in that month, ${last?.["threshold_disputes"]} disputes: ${last?.["outcome"]}.`,
        axis: (value) => `${Number(value.toFixed(2))} %`,
        columns: own.map((row) => ({
          label: row["month"]?.slice(0, 7) ?? "",
          parts: [{ value: Number(row["ratio_percent"] ?? 0), tone: toneOf(row["outcome"]) }],
          note: `${row["disputes"]} of ${row["threshold_disputes"]}`,
          mark: row["outcome"] === "over" ? { sign: "×", meaning: "over the threshold" } : null,
        })),
        thresholds: [{ value: threshold, label: `${threshold} %` }],
        legend: [],
      };
    }),
  );
}

const toneOf = (outcome: string | null | undefined) => (outcome === "below" ? "base" : "loss");

const nameOf = (brand: string): string => brand.slice(0, 1).toUpperCase() + brand.slice(1);
