import { type Report, day, money, summedMoney, text, time } from "../../base/report.ts";

export const chargebacks: Report = {
  name: "chargebacks",
  explains: "each chargeback that was open at any time of the period, and the amount refunded before it",
  source: "chargeback_list",
  sql: new URL("./chargebacks.sql", import.meta.url),
  columns: [
    ...text("chargeback", "order_id", "order_number", "brand"),
    ...day("sold_on", "noticed_on"),
    ...time("noticed_at"),
    ...text("state"),
    ...day("resolved_on"),
    ...text("currency"),
    ...summedMoney("amount"),
    ...money("refunded_before"),
  ],
  orderBy: 'noticed_at, chargeback collate "C"',
  tellsUnknown: true,
};
