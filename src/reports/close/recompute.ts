import type { Knex } from "knex";
import { errorCode } from "../../platform/postgres/errors.ts";
import { defaultAccounts } from "../base/account-map.ts";
import { parseDays, resolvePeriod } from "../base/period.ts";
import { readReport, readingTransaction } from "../base/read-report.ts";
import { allReports } from "../catalogue/all.ts";
import { readCloses } from "./verify.ts";

/**
 * SHA-256 of the rows of each report of the last closed months, computed again as of their close: from the mirror as it
 * is here, which may be a part of one. A report that this database cannot compute has no entry. To be compared with
 * what the same database said before its functions changed: neither is what was frozen, unless the mirror is whole.
 *
 * @param months the most that are computed, the latest first
 */
export async function recomputeClosedMonths(
  db: Knex,
  months: number,
): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for (const { facts } of (await readCloses(db)).slice(-months)) {
    for (const report of allReports) {
      try {
        const { sha256 } = await readingTransaction(db, async (trx) => {
          const days = parseDays({ from: facts.month }, facts.month);
          const period = await resolvePeriod(trx, days, facts.time_zone);
          const scope = { period, asOf: facts.as_of, currency: null, finalUntil: period.toUtc };
          const question = {
            report,
            ...scope,
            accounts: defaultAccounts,
            region: "global" as const,
          };
          return readReport(trx, question, () => {});
        });
        found.set(`${facts.month} ${report.name}`, sha256);
      } catch (error) {
        if (errorCode(error) === undefined) throw error;
      }
    }
  }
  return found;
}
