import { type Report, count, money, text } from "../../base/report.ts";
import { balanceSteps } from "../../base/figure.ts";

export const mrr: Report = {
  name: "mrr",
  explains:
    "a month's recurring amounts, net of discounts: opening + new + expansion - contraction - churn + " +
    "reactivation = closing; and how much of it is past due",
  source: "mrr",
  sql: new URL("./mrr.sql", import.meta.url),
  columns: [
    ...text("currency"),
    ...money(
      "opening",
      "new_mrr",
      "expansion",
      "contraction",
      "churn_voluntary",
      "churn_involuntary",
      "reactivation",
      "closing",
      "at_risk_opening",
      "at_risk_closing",
      "discounts",
    ),
    ...count("subscriptions"),
  ],
  orderBy: "currency",
  tellsUnknown: true,
  figures: balanceSteps("Recurring amount a month, net", [
    { column: "new_mrr", label: "New", sign: 1 },
    { column: "expansion", label: "Expansion", sign: 1 },
    { column: "reactivation", label: "Reactivation", sign: 1 },
    { column: "contraction", label: "Contraction", sign: -1 },
    { column: "churn_voluntary", label: "Churn, voluntary", sign: -1 },
    { column: "churn_involuntary", label: "Churn, involuntary", sign: -1 },
  ]),
};
