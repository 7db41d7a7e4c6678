import { count, day, money, number, percent, summedCount, summedMoney, text } from "../columns.ts";
import { controlTotals } from "../figures/control-totals.ts";
import type { Report } from "../report.ts";

export const dailyControl: Report = {
  name: "daily-control",
  explains: "does the mirror hold what the service's list shows, day by day, in count and sum?",
  source: "daily_control",
  sql: new URL("./daily-control/daily-control.sql", import.meta.url),
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
  failsOn: "differs",
  figures: controlTotals,
};
