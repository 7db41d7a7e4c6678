import type { Knex } from "knex";
import { counted } from "../../platform/readable-text.ts";
import type { Period } from "./period.ts";

/** The frozen month that rows come from. */
export interface CloseMark {
  month: string;
  /** Snapshot id. */
  id: string;
  closedAt: string;
  /** Null if an earlier version closed the month. */
  closedBy: string | null;
  /** Why it was closed without a PASS; null if it passed. */
  reason: string | null;
  /** The seal of the whole close, as `close` printed it. */
  sha256: string;
}

/** The facts printed above or below the rows, so that a person can sign them off. */
export interface About {
  report: string;
  explains: string;
  period: Period;
  /** The time that the rows are as of. With `isLive` it is now, and a minute later they may differ. */
  asOf: string;
  isLive: boolean;
  currency: string | null;
  close: CloseMark | null;
  proof: Proof;
  rows: number;
  /** Of the column names and the rows, one JSON array a line. */
  sha256: string;
}

/** What no report can know: fees and payouts are not in the service's interface. */
const notKnown = "Gross of fees and payouts, which the service does not tell.";

/** The facts as lines, in the same order for every format. Pure. */
export function aboutLines(about: About): [label: string, value: string][] {
  const { period, proof, close } = about;
  return [
    ["Report", `${about.report}: ${about.explains}`],
    ["Result", resultLine(about)],
    ["Period", `${period.from} to ${period.to}, both included`],
    ["Time zone", `${period.timeZone}: from ${period.fromUtc}, before ${period.toUtc} (UTC)`],
    ["As of", about.isLive ? `${about.asOf} (now; a repeat may differ)` : about.asOf],
    ...(about.currency === null ? [] : [["Currency", about.currency] as [string, string]]),
    [
      "Coverage",
      `${proof.coveragePercent} % of the time, all read until ${proof.readUntil ?? "never"}, run ${proof.lastRun ?? "none"}`,
    ],
    ...(close === null
      ? []
      : ([
          [
            "Closed",
            `${close.month}${close.closedBy === null ? "" : ` by ${close.closedBy}`}, snapshot ${close.id} of ` +
              `${close.closedAt}, SHA-256 of all ${close.sha256}`,
          ],
        ] as [string, string][])),
    ...(close?.reason == null ? [] : [["Forced", close.reason] as [string, string]]),
    ["Rows", String(about.rows)],
    ["SHA-256", about.sha256],
    ["Note", notKnown],
  ];
}

/** The verdict in a sentence, and what to do about it. Pure. */
export function resultLine({ proof, period }: Pick<About, "proof" | "period">): string {
  const { verdict, openFindings, openWarnings } = proof;
  if (verdict === "INCOMPLETE") {
    return `INCOMPLETE: not everything before ${period.toUtc} was read and proved ("tallyhook reconcile" reads on)`;
  }
  if (verdict === "PASS") {
    return openWarnings === "0"
      ? "PASS"
      : `PASS (${counted(openWarnings, "warning is", "warnings are")} open)`;
  }
  return `FAIL: ${openFindings === "0" ? "rows of this report differ" : `${counted(openFindings, "finding is", "findings are")} open`} ("tallyhook report exceptions")`;
}

export type Verdict = "PASS" | "FAIL" | "INCOMPLETE";

/** What reconciliation has proved up to the end of a period. */
export interface Proof {
  verdict: Verdict;
  /** The share of the time up to the end of the period that was read, of the resource that was read least. */
  coveragePercent: string;
  /** Everything created before this time was read; null if not even the first record was. */
  readUntil: string | null;
  lastRun: string | null;
  /** Serious findings that are neither healed nor acknowledged. */
  openFindings: string;
  openWarnings: string;
}

/** Reads verdict and coverage from `reports.verdict`. The only place that asks for coverage. */
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
