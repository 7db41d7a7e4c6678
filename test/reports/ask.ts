import type { Knex } from "knex";
import type { ReportFacts } from "../../src/parts/reports/base/report-facts.ts";
import { type AccountMap, defaultAccounts } from "../../src/parts/reports/base/account-map.ts";
import { findReport } from "../../src/parts/reports/catalogue/all.ts";
import { resolvePeriod } from "../../src/parts/reports/base/period.ts";
import { type NetworkRegion, readReport, readingTransaction } from "../../src/parts/reports/base/read-report.ts";

export type Answer = Record<string, string | null>;

export interface Asked {
  from: string;
  to: string;
  timeZone?: string;
  asOf?: string | null;
  currency?: string | null;
  region?: NetworkRegion;
  accounts?: AccountMap;
}

/** Asks one report and gives back its rows by column name. */
export async function ask(
  db: Knex,
  name: string,
  { from, to, timeZone = "UTC", asOf = null, currency = null, region = "global", accounts = defaultAccounts }: Asked,
): Promise<{ rows: Answer[]; about: ReportFacts }> {
  const report = findReport(name);
  const period = await resolvePeriod(db, { from, to }, timeZone);
  const rows: Answer[] = [];
  const question = { report, period, asOf, currency, accounts, region };
  const about = await readingTransaction(db, (trx) =>
    readReport(trx, question, (batch) => {
      for (const row of batch) {
        rows.push(Object.fromEntries(report.columns.map(({ name: key }, n) => [key, row[n] ?? null])));
      }
    }),
  );
  return { rows, about };
}
