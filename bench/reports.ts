import pg from "pg";
import type { Benchmark, Target } from "./benchmark.ts";
import { allReports } from "../src/parts/reports/catalogue/all.ts";
import { defaultAccounts } from "../src/parts/reports/base/account-map.ts";
import { resolvePeriod } from "../src/parts/reports/base/period.ts";
import { readingTransaction, readReport } from "../src/parts/reports/base/read-report.ts";
import { createDatabase } from "../src/platform/postgres/pool.ts";
import { meterSeconds } from "./support/cpu-meter.ts";
import { fillYear } from "./support/fill-year.ts";
import { fillGrownInbox } from "./support/grown-inbox.ts";
import { placement } from "./support/pinning.ts";
import type { DataPlace } from "./support/stand.ts";
import { filledYear } from "./support/year.ts";

const sizes = [100_000, 1_000_000];
const wantedReportMs = 5_000;
const year = { from: `${filledYear}-01-01`, to: `${filledYear}-12-31` };
/** A month before the end of the history: every twelfth object has changed since. */
const asOf = `${filledYear}-12-01T00:00:00.000Z`;

export interface MeasuredReport {
  name: string;
  rows: number;
  now: ReadCost;
  /** As of `asOf`. */
  past: ReadCost;
}

/** From the start of a report's transaction to its last row. */
interface ReadCost {
  ms: number;
  /** CPU time of PostgreSQL and of this process, in ms. On a busy machine it is a better measure than the clock. */
  cpuMs: { postgres: number; node: number };
}

export const describeRead = ({ ms, cpuMs: { postgres, node } }: ReadCost): string =>
  `${ms.toFixed(0)} ms (CPU ${postgres.toFixed(0)} + ${node.toFixed(0)})`;

/** Reads every report over the filled year, from the start of its transaction to its last row, one pass each. */
export async function measureReports(
  { databaseUrl, pids }: Pick<DataPlace, "databaseUrl" | "pids">,
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
        const [startedAt, own, meter] = [performance.now(), process.cpuUsage(), meterSeconds(pids)];
        const { rows } = await readingTransaction(db, (trx) => readReport(trx, question, () => {}));
        const { user, system } = process.cpuUsage(own);
        const postgres = (meter()["postgres"] ?? 0) * 1_000;
        const cpuMs = { postgres, node: (user + system) / 1_000 };
        return { rows, cost: { ms: performance.now() - startedAt, cpuMs } };
      };
      const { rows, cost: now } = await read(null);
      const { cost: past } = await read(asOf);
      measured.push({ name: report.name, rows, now, past });
      say(`${report.name}: ${describeRead(now)}, as of then ${describeRead(past)}, ${rows} rows`);
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
      await stand.withDatabase("postgres", placement.all, async ({ databaseUrl, pids }) => {
        const client = new pg.Client({ connectionString: databaseUrl });
        await client.connect();
        say(`making ${size} orders`);
        await fillYear(client, size, () => {});
        await fillGrownInbox(client, { events: size / 4, orders: size });
        await client.end();
        const measured = await measureReports({ databaseUrl, pids }, say);
        for (const [n, { rows: count, now, past }] of measured.entries()) {
          Object.assign(rows[n] ?? {}, {
            [`${size} rows`]: count,
            [`${size} ms`]: now.ms.toFixed(0),
            [`${size} ms as of`]: past.ms.toFixed(0),
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
  const slowest = measured.reduce((worst, each) => (each.now.ms > worst.now.ms ? each : worst));
  const { name, now } = slowest;
  return {
    what: `slowest report ${over} (${name})`,
    wanted: `< ${wantedReportMs} ms`,
    measured: describeRead(now),
    reached: now.ms < wantedReportMs,
  };
}
