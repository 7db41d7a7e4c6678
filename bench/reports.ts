import pg from "pg";
import type { Benchmark, Target } from "./benchmark.ts";
import { allReports } from "../src/reports/catalogue/all.ts";
import { defaultAccounts } from "../src/reports/base/account-map.ts";
import { resolvePeriod } from "../src/reports/base/period.ts";
import { readingTransaction, readReport } from "../src/reports/base/read-report.ts";
import { createDatabase } from "../src/platform/postgres/pool.ts";
import { fillYear } from "./support/fill-year.ts";
import { fillGrownInbox } from "./support/grown-inbox.ts";
import { placement } from "./support/pinning.ts";
import { filledYear } from "./support/year.ts";

const sizes = [100_000, 1_000_000];
const wantedReportMs = 5_000;
const year = { from: `${filledYear}-01-01`, to: `${filledYear}-12-31` };
/** A month before the end of the history: every twelfth object has changed since. */
const asOf = `${filledYear}-12-01T00:00:00.000Z`;

export interface MeasuredReport {
  name: string;
  rows: number;
  ms: number;
  /** As of `asOf`. */
  asOfMs: number;
}

/** Reads every report over the filled year, from the start of its transaction to its last row, one pass each. */
export async function measureReports(
  databaseUrl: string,
  say: (line: string) => void,
): Promise<MeasuredReport[]> {
  const db = createDatabase({ url: databaseUrl, poolMax: 1, applicationName: "bench reports" });
  try {
    const period = await resolvePeriod(db, year, "Europe/Berlin");
    const measured: MeasuredReport[] = [];
    for (const report of allReports) {
      const read = async (when: string | null) => {
        const question = {
          report,
          period,
          asOf: when,
          currency: null,
          accounts: defaultAccounts,
          region: "global" as const,
        };
        const startedAt = performance.now();
        const { rows } = await readingTransaction(db, (trx) => readReport(trx, question, () => {}));
        return { ms: performance.now() - startedAt, rows };
      };
      const { ms, rows } = await read(null);
      const then = await read(asOf);
      measured.push({ name: report.name, rows, ms, asOfMs: then.ms });
      say(`${report.name}: ${ms.toFixed(0)} ms, as of then ${then.ms.toFixed(0)} ms, ${rows} rows`);
    }
    return measured;
  } finally {
    await db.destroy();
  }
}

/** Every report over a year of orders, each read to its last row. */
export const reports: Benchmark = {
  name: "reports",
  title: `Every report over a year of ${sizes.map((n) => n.toLocaleString("en")).join(" and ")} orders`,
  async run(stand, _options, say) {
    const rows = allReports.map(({ name }): Record<string, string | number> => ({ report: name }));
    const targets: Target[] = [];
    for (const size of sizes) {
      await stand.withDatabase("postgres", placement.all, async ({ databaseUrl }) => {
        const client = new pg.Client({ connectionString: databaseUrl });
        await client.connect();
        say(`making ${size} orders`);
        await fillYear(client, size, () => {});
        await fillGrownInbox(client, { events: size / 4, orders: size });
        await client.end();
        const measured = await measureReports(databaseUrl, say);
        for (const [n, { rows: count, ms, asOfMs }] of measured.entries()) {
          Object.assign(rows[n] ?? {}, {
            [`${size} rows`]: count,
            [`${size} ms`]: ms.toFixed(0),
            [`${size} ms as of`]: asOfMs.toFixed(0),
          });
        }
        if (size === sizes.at(-1)) targets.push(slowestReport(measured, `over ${size} orders`));
      });
    }
    return {
      rows,
      targets,
      notes: [
        "one pass each, from the start of the transaction to the last row",
        `"as of": ${asOf}, a month before the end of the history`,
      ],
    };
  },
};

/** The slowest report as a target. */
export function slowestReport(measured: readonly MeasuredReport[], over: string): Target {
  const { name, ms } = measured.reduce((worst, each) => (each.ms > worst.ms ? each : worst));
  return {
    what: `slowest report ${over} (${name})`,
    wanted: `< ${wantedReportMs} ms`,
    measured: `${ms.toFixed(0)} ms`,
    reached: ms < wantedReportMs,
  };
}
