import { type Report, day, summedMoney, text, time } from "../../base/report.ts";

export const changesAfterClose: Report = {
  name: "changes-after-close",
  explains: "movements that were learned of after their month was closed, and are booked in a later one",
  source: "changes_after_close",
  sql: new URL("./changes-after-close.sql", import.meta.url),
  columns: [
    ...text("movement", "kind", "order_id"),
    ...time("happened_at"),
    ...day("happened_on", "booked_on"),
    ...text("currency"),
    ...summedMoney("amount"),
  ],
  orderBy: 'booked_on, happened_at, movement collate "C", currency',
  tellsUnknown: true,
};
