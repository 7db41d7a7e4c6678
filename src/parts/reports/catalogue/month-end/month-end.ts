import { type Report, money, month, summedMoney, text } from "../../base/report.ts";
import { balanceSteps } from "../../base/figure.ts";

export const monthEnd: Report = {
  name: "month-end",
  explains:
    "cumulative gross: opening + sales - refunds - chargebacks + reversals + corrections = closing, a month and " +
    "currency; and how much of it was paid and not settled",
  source: "month_end",
  sql: new URL("./month-end.sql", import.meta.url),
  columns: [
    ...month("month"),
    ...text("currency"),
    ...money("cumulative_gross_opening"),
    ...summedMoney("sales", "refunds", "chargebacks", "reversals", "corrections"),
    ...money("cumulative_gross_closing", "unsettled_opening", "unsettled_closing"),
  ],
  orderBy: "month, currency",
  tellsUnknown: true,
  figures: balanceSteps(
    "Cumulative gross, from opening to closing",
    [
      { column: "sales", label: "Sales", sign: 1 },
      { column: "refunds", label: "Refunds", sign: -1 },
      { column: "chargebacks", label: "Chargebacks", sign: -1 },
      { column: "reversals", label: "Reversals", sign: 1 },
      { column: "corrections", label: "Corrections", sign: 1 },
    ],
    { opening: "cumulative_gross_opening", closing: "cumulative_gross_closing" },
  ),
};
