import { type Exponents, amountText, shortAmount } from "../../base/currencies.ts";
import type { Figure } from "../../../../app/figures/figure.ts";
import { type RowByColumn, groupBy, sumOf } from "../../base/figure.ts";
import { type Report, summedCount, summedMoney, text, time } from "../../base/report.ts";

export const pastDueAging: Report = {
  name: "past-due-aging",
  explains: "unpaid renewals of past due subscriptions by age at the end of the period, and the next retry",
  source: "past_due_aging",
  sql: new URL("./past-due-aging.sql", import.meta.url),
  columns: [
    ...text("currency", "days_past_due"),
    ...summedCount("orders"),
    ...summedMoney("amount"),
    ...time("next_retry_at"),
  ],
  orderBy: "currency, cast(substring(days_past_due from '^[0-9]+') as integer)",
  tellsUnknown: true,
  figures: aging,
};

const ages = ["0-7", "8-14", "15-30", "31-60", "61+"];

/** Past-due amounts by age in days; one figure for each currency. */
function aging(rows: readonly RowByColumn[], exponents: Exponents): Figure[] {
  return groupBy(rows, "currency").map(([currency, own]): Figure => {
    const byAge = new Map(groupBy(own, "days_past_due"));
    const columns = ages.map((age) => {
      const orders = byAge.get(age) ?? [];
      const count = sumOf(orders, "orders");
      return {
        label: `${age.replace("-", "–")} days`,
        parts: [
          {
            value: Number(sumOf(orders, "amount")),
            tone: age === "61+" ? ("loss" as const) : ("base" as const),
          },
        ],
        note: count === 1n ? "1 order" : `${count} orders`,
        mark: null,
      };
    });
    return {
      kind: "columns",
      title: `Past due by age, ${currency.toUpperCase()}`,
      describes: `${amountText(sumOf(own, "amount"), currency, exponents)} of ${sumOf(own, "orders")} unpaid renewals.`,
      axis: (value) => shortAmount(value, currency, exponents),
      columns,
      thresholds: [],
      legend: [],
    };
  });
}
