import type { Exponents } from "../currencies.ts";
import { amountText, shortAmount } from "./amounts.ts";
import { groupBy, sumOf } from "./figure.ts";
import type { Cells, Figure } from "./figure.ts";

const ages = ["0-7", "8-14", "15-30", "31-60", "61+"];

/** What is past due by its age in days, a figure for each currency. */
export function aging(rows: readonly Cells[], exponents: Exponents): Figure[] {
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
