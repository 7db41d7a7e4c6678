import { type Report, day, money, number, summedMoney, text, time } from "../../base/report.ts";

export const refunds: Report = {
  name: "refunds",
  explains: "each refund on its own date, with the amount refunded on its order so far (sum: all statuses)",
  source: "refunds",
  sql: new URL("./refunds.sql", import.meta.url),
  columns: [
    ...text("refund", "order_id", "order_number", "customer_id"),
    ...day("sold_on", "refunded_on"),
    ...time("refunded_at"),
    ...text("currency"),
    ...summedMoney("amount"),
    ...money("cumulative"),
    ...text("extent", "status"),
    ...number("days"),
  ],
  orderBy: 'refunded_at, refund collate "C"',
  tellsUnknown: true,
};
