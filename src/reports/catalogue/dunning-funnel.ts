import { day, number, percent, summedCount, summedMoney, text } from "../columns.ts";
import { dunningSteps } from "../figures/dunning-steps.ts";
import type { Report } from "../report.ts";

export const dunningFunnel: Report = {
  name: "dunning-funnel",
  explains:
    "what became of declined renewals, by the week of the first decline and the attempt that recovered them",
  source: "dunning_funnel",
  sql: new URL("./dunning-funnel/dunning-funnel.sql", import.meta.url),
  columns: [
    ...day("week"),
    ...text("currency"),
    ...summedCount("entered"),
    ...summedMoney("entered_amount"),
    ...summedCount(
      "recovered_at_2",
      "recovered_at_3",
      "recovered_at_4",
      "recovered_later",
      "recovered",
    ),
    ...summedMoney("recovered_amount"),
    ...summedCount("lost"),
    ...summedMoney("lost_amount"),
    ...summedCount("in_progress"),
    ...summedMoney("in_progress_amount"),
    ...percent("recovery_percent"),
    ...number("median_days"),
  ],
  orderBy: "week, currency",
  figures: dunningSteps,
};
