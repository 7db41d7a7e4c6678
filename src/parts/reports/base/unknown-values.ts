import type { Knex } from "knex";
import { counted } from "../../../platform/readable-text.ts";
import type { Period } from "./period.ts";
import type { Report, Row } from "./report.ts";

/** The number of things with an unknown value; `what` is the kind and the field, such as `sale.amount`. */
export interface Unknown {
  what: string;
  n: number;
}

/**
 * The unknown values of a report, from its function `reports.<source>_unknown`, if it has one. Needs the transaction
 * that reads the rows. One statement.
 */
export async function readUnknown(
  trx: Knex.Transaction,
  { report, period, asOf }: { report: Report; period: Period; asOf: string | null },
): Promise<Unknown[]> {
  if (report.tellsUnknown !== true) return [];
  const { rows } = await trx.raw<{ rows: { what: string; n: string }[] }>(
    `select what, sum(n)::text as n from reports.${report.source}_unknown(?, ?, ?, ?)
     group by what having sum(n) > 0 order by what collate "C"`,
    [period.fromUtc, period.toUtc, period.timeZone, asOf],
  );
  return rows.map(({ what, n }) => ({ what, n: Number(n) }));
}

/**
 * Counts rows without a card brand, and those without an amount or a currency, of reports that do not count unknown
 * values themselves.
 */
export function countUnknownCells({ columns, tellsUnknown }: Pick<Report, "columns" | "tellsUnknown">) {
  const amounts = columns.flatMap(({ kind, isSummed }, n) =>
    kind === "money" && isSummed === true && tellsUnknown !== true ? [n] : [],
  );
  const currency = tellsUnknown === true ? -1 : columns.findIndex(({ name }) => name === "currency");
  const brand = columns.findIndex(({ name }) => name === "brand");
  const found = { amount: 0, currency: 0, brand: 0 };
  return {
    add(rows: readonly Row[]): void {
      for (const row of rows) {
        if (amounts.some((n) => row[n] === null)) found.amount += 1;
        if (currency >= 0 && (row[currency] === null || row[currency] === "xxx")) found.currency += 1;
        if (brand >= 0 && row[brand] === "unknown") found.brand += 1;
      }
    },
    counts: (): Unknown[] =>
      (["amount", "currency", "brand"] as const).flatMap((field) =>
        found[field] === 0 ? [] : [{ what: `row.${field}`, n: found[field] }],
      ),
  };
}

/** The effect on the figures. */
const fields: Readonly<Record<string, string>> = {
  amount: "without a known amount (in no sum of money)",
  currency: "without a known currency (in no sum of a currency)",
  created_at: "without a known date (in no figure)",
  type: "without a known type (in no figure)",
  status: "without a known status (in no figure)",
  order: "without a known order (in no figure that needs it)",
  brand: "without a known card brand (in no brand's figures)",
  code: "without a known reason (under unknown)",
  subscription: "without a known subscription (not counted as lost)",
  refunded: "for which the amount refunded before is unknown",
  plan: "whose plan or interval was never known (in no sum of money)",
  plan_shown: "whose plan, interval or cycle is missing or unknown at that time (the last known one counts)",
  one_currency: "with another currency than before (a contraction in the one, an expansion in the other)",
};

/** The unknown values, in a phrase for each. */
export const unknownLine = (unknown: readonly Unknown[]): string =>
  unknown
    .map(({ what, n }) => {
      const [thing = "", field = ""] = what.split(".");
      return (
        `${counted(n, thing === "attempt" ? "declined charge" : thing)} ` +
        `${fields[field] ?? `without a known ${field}`}`
      );
    })
    .join("; ");
