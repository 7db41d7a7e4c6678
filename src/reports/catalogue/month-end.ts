import { money, month, summedMoney, text } from "../columns.ts";
import type { Report } from "../report.ts";

export const monthEnd: Report = {
  name: "month-end",
  explains:
    "opening + sales - refunds - chargebacks + reversals + corrections = closing, a month and currency",
  source: "month_end",
  columns: [
    ...month("month"),
    ...text("currency"),
    ...money("opening"),
    ...summedMoney("sales", "refunds", "chargebacks", "reversals", "corrections"),
    ...money("closing"),
  ],
  orderBy: "month, currency",
};
