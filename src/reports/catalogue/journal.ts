import { day, number, summedMoney, text } from "../columns.ts";
import type { Report } from "../report.ts";

export const journal: Report = {
  name: "journal",
  explains:
    "double entry for the ledger: one balanced entry a currency and day; final of closed months, else preliminary",
  source: "journal",
  sql: new URL("./journal/journal.sql", import.meta.url),
  columns: [
    ...text("number", "status"),
    ...day("date"),
    ...text("account", "description"),
    ...summedMoney("debit", "credit"),
    ...text("currency"),
    ...number("line"),
  ],
  orderBy: "date, currency, status, line",
  takesAccounts: true,
};
