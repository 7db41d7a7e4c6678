import { type Report, day, number, summedMoney, text, time } from "../../base/report.ts";

export const cutOff: Report = {
  name: "cut-off",
  explains: "each sale that was paid and not settled at the end of the period, and when it was settled since",
  source: "cut_off",
  sql: new URL("./cut-off.sql", import.meta.url),
  columns: [
    ...text("sale", "order_id", "order_number"),
    ...day("paid_on"),
    ...time("paid_at"),
    ...text("status"),
    ...day("settled_on"),
    ...number("days"),
    ...text("currency"),
    ...summedMoney("amount"),
  ],
  orderBy: 'paid_at, sale collate "C"',
  tellsUnknown: true,
};
