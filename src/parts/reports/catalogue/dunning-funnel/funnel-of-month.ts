import type { Knex } from "knex";
import type { Html } from "../../../../platform/html.ts";
import { currencyDigits } from "../../../../platform/money.ts";
import type { RowByColumn } from "../../base/figure.ts";
import { renderFigures } from "../../../../app/figures/svg-figures.ts";
import { dunningFunnel } from "./dunning-funnel.ts";

/** Outcomes of the renewals of one currency that were first declined in a month. Amounts are minor units. */
interface CurrencyFunnel {
  currency: string | null;
  declined: { count: number; minor: bigint };
  /** Counted by the attempt that was paid: the second, third and fourth, then all later ones. */
  recoveredAt: readonly [second: number, third: number, fourth: number, later: number];
  recovered: { count: number; minor: bigint };
  inProgress: { count: number; minor: bigint };
  lost: { count: number; minor: bigint };
}

/**
 * The report dunning-funnel of a month, such as `2026-11`, by currency, and its drawings. One statement.
 */
export async function funnelOfMonth(
  db: Knex,
  { month, timeZone }: { month: string; timeZone: string },
): Promise<{ currencies: CurrencyFunnel[]; figures: Html | null }> {
  const { rows } = await db.raw<{ rows: RowByColumn[] }>(
    `select currency, sum(entered)::text as entered, sum(entered_amount)::text as entered_amount,
            sum(recovered_at_2)::text as recovered_at_2, sum(recovered_at_3)::text as recovered_at_3,
            sum(recovered_at_4)::text as recovered_at_4, sum(recovered_later)::text as recovered_later,
            sum(recovered)::text as recovered, sum(recovered_amount)::text as recovered_amount,
            sum(lost)::text as lost, sum(lost_amount)::text as lost_amount,
            sum(in_progress)::text as in_progress, sum(in_progress_amount)::text as in_progress_amount
     from reports.dunning_funnel(reports.day_start(?::date, ?),
                                 reports.day_start((?::date + interval '1 month')::date, ?), ?)
     group by currency order by currency`,
    [`${month}-01`, timeZone, `${month}-01`, timeZone, timeZone],
  );
  return {
    currencies: rows.map(toFunnel),
    figures: renderFigures(
      dunningFunnel.figures?.(
        rows.filter(({ currency }) => currency !== null),
        currencyDigits,
      ) ?? [],
    ),
  };
}

function toFunnel(row: RowByColumn): CurrencyFunnel {
  const count = (column: string): number => Number(row[column] ?? 0);
  const both = (column: string) => ({
    count: count(column),
    minor: BigInt(row[`${column}_amount`] ?? 0),
  });
  return {
    currency: row["currency"] ?? null,
    declined: both("entered"),
    recoveredAt: [count("recovered_at_2"), count("recovered_at_3"), count("recovered_at_4"), count("recovered_later")],
    recovered: both("recovered"),
    inProgress: both("in_progress"),
    lost: both("lost"),
  };
}
