import type { Knex } from "knex";
import { counted } from "../../platform/readable-text.ts";
import type { Period } from "./period.ts";

/** The frozen month that rows come from. */
export interface CloseMark {
  month: string;
  /** Snapshot id. */
  id: string;
  closedAt: string;
  /** Null where an earlier version closed it. */
  closedBy: string | null;
  /** Why it was closed without a PASS. */
  reason: string | null;
  /** Of the whole close, as `close` printed it. */
  sha256: string;
}

/** What stands above or below the rows, so that they can be signed. */
export interface About {
  report: string;
  explains: string;
  period: Period;
  /** What the mirror said then; `isLive`: now, and perhaps otherwise in a minute. */
  asOf: string;
  isLive: boolean;
  currency: string | null;
  close: CloseMark | null;
  proof: Proof;
  rows: number;
  /** Of the column names and the rows as JSON arrays, a line each. */
  sha256: string;
}

/** What no report can know (spec: fees and payouts are not in the interface). */
const notKnown = "Gross of fees and payouts, which the service does not tell.";

/** The same facts in the same order for every format. Pure. */
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
