import { money, month, summedMoney, text } from "../columns.ts";
import { balanceSteps } from "../figures/balance-steps.ts";
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
  figures: balanceSteps("From the opening to the closing balance", [
    { column: "sales", label: "Sales", sign: 1 },
    { column: "refunds", label: "Refunds", sign: -1 },
    { column: "chargebacks", label: "Chargebacks", sign: -1 },
    { column: "reversals", label: "Reversals", sign: 1 },
    { column: "corrections", label: "Corrections", sign: 1 },
  ]),
};
