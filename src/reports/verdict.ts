import type { Knex } from "knex";
import type { Period } from "./period.ts";

export type Verdict = "PASS" | "FAIL" | "INCOMPLETE";

/** What reconciliation has proved of everything up to the end of a period. */
export interface Proof {
  verdict: Verdict;
  /** Of the time up to the end of the period, by the resource that was read least. */
  coveragePercent: string;
  /** Everything created before this was read; null when not even the first record was. */
  readUntil: string | null;
  lastRun: string | null;
  /** Neither healed nor acknowledged. */
  openFindings: string;
  openWarnings: string;
}

/** The one place that asks for coverage: `reports.verdict` over the ledger of reconciliation. */
export async function readProof(
  db: Knex,
  { fromUtc, toUtc }: Pick<Period, "fromUtc" | "toUtc">,
  asOf: string | null,
): Promise<Proof> {
  const { rows } = await db.raw<{ rows: Record<string, string | null>[] }>(
    `select verdict, coverage_percent::text, last_run::text, open_findings::text, open_warnings::text,
            to_char(read_until at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as read_until
     from reports.verdict(?, ?, ?)`,
    [fromUtc, toUtc, asOf],
  );
  const row = rows[0] ?? {};
  return {
    verdict: (row["verdict"] ?? "INCOMPLETE") as Verdict,
    coveragePercent: row["coverage_percent"] ?? "0",
    readUntil: row["read_until"] ?? null,
    lastRun: row["last_run"] ?? null,
    openFindings: row["open_findings"] ?? "0",
    openWarnings: row["open_warnings"] ?? "0",
  };
}

/** SQL: whether a row `slice` of `reports.read_slices` still counts for a verdict as of a time, as in `reports.verdict`. */
export const isFresh = (slice: string, asOf: string): string => `${slice}.fresh_until > ${asOf}`;
