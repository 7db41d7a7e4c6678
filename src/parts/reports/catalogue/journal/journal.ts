import { type Report, day, number, summedMoney, text } from "../../base/report.ts";

export const journal: Report = {
  name: "journal",
  explains:
    "double entry for the ledger: one balanced entry a currency and day; final of closed months, else preliminary",
  source: "journal",
  sql: new URL("./journal.sql", import.meta.url),
  columns: [
    ...text("number", "status"),
    ...day("date"),
    ...text("account", "description"),
    ...summedMoney("debit", "credit"),
    ...text("currency"),
    ...number("line"),
  ],
  orderBy: "date, currency, status, line",
  tellsUnknown: true,
  takesAccounts: true,
};
