import { type Exponents, amountText, grouped } from "../../base/currencies.ts";
import type { Figure } from "../../../../app/figures/figure.ts";
import { type RowByColumn, groupBy, sumOf } from "../../base/figure.ts";
import { type Report, percent, summedCount, summedMoney, text } from "../../base/report.ts";

export const declines: Report = {
  name: "declines",
  explains: "declined charges by code, brand and kind of charge, and the share that was recovered later",
  source: "declines",
  sql: new URL("./declines.sql", import.meta.url),
  columns: [
    ...text("currency", "failure_code", "code_group", "brand", "charge"),
    ...summedCount("declines"),
    ...summedMoney("amount"),
    ...percent("share_percent", "recovered_percent"),
  ],
  orderBy: 'currency, declines desc, failure_code collate "C", brand collate "C", charge',
  tellsUnknown: true,
  figures: declineShares,
};

/** Declined attempts by code, the most frequent first; one figure for each currency. */
function declineShares(rows: readonly RowByColumn[], exponents: Exponents): Figure[] {
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
