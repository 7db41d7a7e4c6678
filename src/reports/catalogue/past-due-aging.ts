import { summedCount, summedMoney, text, time } from "../columns.ts";
import { aging } from "../figures/aging.ts";
import type { Report } from "../report.ts";

export const pastDueAging: Report = {
  name: "past-due-aging",
  explains:
    "unpaid renewals of past due subscriptions by age at the end of the period, and the next retry",
  source: "past_due_aging",
  sql: new URL("./past-due-aging/past-due-aging.sql", import.meta.url),
  columns: [
    ...text("currency", "days_past_due"),
    ...summedCount("orders"),
    ...summedMoney("amount"),
    ...time("next_retry_at"),
  ],
  orderBy: "currency, cast(substring(days_past_due from '^[0-9]+') as integer)",
  figures: aging,
};
