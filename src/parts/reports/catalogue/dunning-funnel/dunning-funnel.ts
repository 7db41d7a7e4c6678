import { type Exponents, amountText, grouped } from "../../base/currencies.ts";
import type { Bar, Figure, Tone } from "../../../../app/figures/figure.ts";
import { type RowByColumn, groupBy, sumOf } from "../../base/figure.ts";
import { type Report, day, number, percent, summedCount, summedMoney, text } from "../../base/report.ts";

export const dunningFunnel: Report = {
  name: "dunning-funnel",
  explains: "the outcome of declined renewals, by the week of the first decline and the attempt that recovered them",
  source: "dunning_funnel",
  sql: new URL("./dunning-funnel.sql", import.meta.url),
  columns: [
    ...day("week"),
    ...text("currency"),
    ...summedCount("entered"),
    ...summedMoney("entered_amount"),
    ...summedCount("recovered_at_2", "recovered_at_3", "recovered_at_4", "recovered_later", "recovered"),
    ...summedMoney("recovered_amount"),
    ...summedCount("lost"),
    ...summedMoney("lost_amount"),
    ...summedCount("in_progress"),
    ...summedMoney("in_progress_amount"),
    ...percent("recovery_percent"),
    ...number("median_days"),
  ],
  orderBy: "week, currency",
  tellsUnknown: true,
  figures: dunningSteps,
};

const ends: readonly { column: string; amount?: string; label: string; tone: Tone }[] = [
  { column: "recovered_at_2", label: "Recovered at attempt 2", tone: "gain" },
  { column: "recovered_at_3", label: "Recovered at attempt 3", tone: "gain" },
  { column: "recovered_at_4", label: "Recovered at attempt 4", tone: "gain" },
  { column: "recovered_later", label: "Recovered later", tone: "gain" },
  {
    column: "in_progress",
    amount: "in_progress_amount",
    label: "Still in progress",
    tone: "other",
  },
  { column: "lost", amount: "lost_amount", label: "Lost", tone: "loss" },
];

/** The declined renewals of all weeks by the step at which they left dunning; one figure for each currency. */
function dunningSteps(rows: readonly RowByColumn[], exponents: Exponents): Figure[] {
  return groupBy(rows, "currency").map(([currency, own]): Figure => {
    const entered = sumOf(own, "entered");
    const amount = (column: string) => amountText(sumOf(own, column), currency, exponents);
    let left = entered;
    const bars = ends.map(({ column, amount: amountColumn, label, tone }): Bar => {
      const n = sumOf(own, column);
      const to = left;
      left -= n;
      const share = entered === 0n ? "0" : ((100 * Number(n)) / Number(entered)).toFixed(1);
      const money = amountColumn === undefined ? "" : ` · ${amount(amountColumn)}`;
      const value = `${grouped(n.toString())} · ${share} %${money}`;
      return { label, from: Number(left), to: Number(to), value, tone };
    });
    const first: Bar = {
      label: "Declined",
      from: 0,
      to: Number(entered),
      value: `${grouped(entered.toString())} · ${amount("entered_amount")}`,
      tone: "base",
    };
    return {
      kind: "bars",
      title: `Outcome of declined renewals, ${currency.toUpperCase()}`,
      describes:
        `Of ${entered} declined renewals, ${sumOf(own, "recovered")} were recovered (${amount("recovered_amount")}), ` +
        `${sumOf(own, "lost")} are lost, ${sumOf(own, "in_progress")} are in progress.`,
      bars: [first, ...bars],
    };
  });
}
