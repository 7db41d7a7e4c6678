import type { Exponents } from "../currencies.ts";
import { amountText, grouped } from "./amounts.ts";
import { groupBy, sumOf } from "./figure.ts";
import type { Cells, Figure } from "./figure.ts";

/** Declined attempts by their code, the most frequent first; a figure for each currency. */
export function declineShares(rows: readonly Cells[], exponents: Exponents): Figure[] {
  return groupBy(rows, "currency").map(([currency, own]): Figure => {
    const all = sumOf(own, "declines");
    const codes = groupBy(own, "failure_code")
      .map(([code, ofCode]) => ({
        code,
        count: sumOf(ofCode, "declines"),
        amount: sumOf(ofCode, "amount"),
      }))
      .sort((a, b) => Number(b.count - a.count));
    return {
      kind: "bars",
      title: `Declines by code, ${currency.toUpperCase()}`,
      describes: `${all} declined attempts; the most frequent code is ${codes[0]?.code ?? "none"}.`,
      bars: codes.map(({ code, count, amount }) => ({
        label: code.replaceAll("_", " "),
        from: 0,
        to: Number(count),
        value: `${grouped(count.toString())} · ${amountText(amount, currency, exponents)}`,
        tone: "base",
      })),
    };
  });
}
