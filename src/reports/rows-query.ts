import type { AccountMap } from "./account-map.ts";
import type { NetworkRegion } from "./network-region.ts";
import type { Period } from "./period.ts";
import type { Column, Report } from "./report.ts";

/** What a report is asked. */
export interface Question {
  report: Report;
  period: Period;
  /** ISO 8601; null: what the mirror says now. */
  asOf: string | null;
  currency: string | null;
  accounts: AccountMap;
  region: NetworkRegion;
  /** UTC: entries booked before it are final although their month is not closed yet; for the close that does it. */
  finalUntil?: string;
}

/** The statement that answers a question, every cell as text. Pure. */
export function rowsQuery({
  report,
  period,
  asOf,
  currency,
  accounts,
  region,
  finalUntil,
}: Question): {
  sql: string;
  bindings: (string | null)[];
} {
  const parameters = ["?::timestamptz", "?::timestamptz", "?", "?::timestamptz"];
  const bindings = [period.fromUtc, period.toUtc, period.timeZone, asOf];
  if (report.takesAccounts === true) {
    parameters.push("?::jsonb", "?::timestamptz");
    bindings.push(JSON.stringify(accounts), finalUntil ?? null);
  }
  if (report.takesRegion === true) {
    parameters.push("?");
    bindings.push(region);
  }
  if (currency !== null) bindings.push(currency);
  return {
    sql: `select ${report.columns.map(asText).join(", ")} from reports.${report.source}(${parameters.join(", ")})
          ${currency === null ? "" : "where currency = ?"} order by ${report.orderBy}`,
    bindings,
  };
}

// An alias would take the column's place in `order by`, and sort as text.
const asText = ({ name, kind }: Column): string =>
  kind === "time"
    ? `to_char(${name} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "${name}_text"`
    : `${name}::text as "${name}_text"`;
