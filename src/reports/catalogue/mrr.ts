import { count, money, text } from "../columns.ts";
import type { Report } from "../report.ts";

export const mrr: Report = {
  name: "mrr",
  explains:
    "opening + new + expansion - contraction - churn + reactivation = closing, a month's recurring amounts",
  source: "mrr",
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
    ),
    ...count("subscriptions"),
  ],
  orderBy: "currency",
};
