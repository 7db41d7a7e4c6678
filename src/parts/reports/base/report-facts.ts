import type { Knex } from "knex";
import { tallyhook } from "../../../platform/command-line.ts";
import { counted } from "../../../platform/readable-text.ts";
import type { Period } from "./period.ts";
import { type Unknown, unknownLine } from "./unknown-values.ts";

/** The frozen month that rows come from. */
export interface FrozenMonth {
  month: string;
  id: string;
  closedAt: string;
  /** Null if an earlier version closed the month. */
  closedBy: string | null;
  /** Absent where one person prepared and closed the month. */
  preparedBy?: string;
  /** The reason for closing without a PASS; null if it passed. */
  reason: string | null;
  /** The seal of the whole close, as `close` printed it. */
  sha256: string;
}

/** How far the standby was from which the rows were read. */
export interface StandbyRead {
  /** ISO 8601. It had everything that was committed on the primary before. */
  replayedUntil: string;
  lagMs: number;
  lagBytes: number;
}

/** The facts printed above or below the rows, so that a person can sign them off. */
export interface ReportFacts {
  report: string;
  explains: string;
  period: Period;
  /** The time that the rows are as of. With `isLive` it is the time of the read, and a repeat may differ. */
  asOf: string;
  isLive: boolean;
  /** The standby that was read; absent for the primary. */
  standby?: StandbyRead;
  currency: string | null;
  close: FrozenMonth | null;
  proof: Proof;
  /** Unknown values that the figures leave out; absent where all are known. */
  unknown?: readonly Unknown[];
  rows: number;
  /** Hash of the column names and the rows, one JSON array a line. */
  sha256: string;
}

/** Facts that no report can show: fees and payouts are not in the service's interface. */
const notShown = "Gross amounts: the service does not report fees and payouts.";

/** The facts as lines, in the same order for every format. */
export function factLines(about: ReportFacts): [label: string, value: string][] {
  const { period, proof, close } = about;
  return [
    ["Report", `${about.report}: ${about.explains}`],
    ["Result", resultLine(about)],
    ["Period", `${period.from} to ${period.to}, both included`],
    [
      "Time zone",
      `${period.timeZone}: from ${period.fromUtc}, before ${period.toUtc} (UTC); days are of this zone, times are UTC`,
    ],
    ["As of", asOfLine(about)],
    ...(about.standby === undefined ? [] : [["Read from", standbyLine(about.standby)] as [string, string]]),
    ...(about.currency === null ? [] : [["Currency", about.currency] as [string, string]]),
    ["Coverage", coverageLine(proof)],
    ...(close === null
      ? []
      : ([
          [
            "Closed",
            `${close.month}${close.closedBy === null ? "" : ` by ${close.closedBy}`}` +
              `${close.preparedBy === undefined ? "" : `, prepared by ${close.preparedBy}`}, close ${close.id} at ` +
              `${close.closedAt}, seal (SHA-256) ${close.sha256}`,
          ],
        ] as [string, string][])),
    ...(close?.reason == null ? [] : [["Forced", close.reason] as [string, string]]),
    ...(about.unknown === undefined ? [] : [["Not known", unknownLine(about.unknown)] as [string, string]]),
    ["Rows", String(about.rows)],
    ["SHA-256", about.sha256],
    ["Note", notShown],
  ];
}

function asOfLine({ asOf, isLive, standby }: Pick<ReportFacts, "asOf" | "isLive" | "standby">) {
  if (!isLive) return asOf;
  const since = standby === undefined ? "now" : "the last that the standby has";
  return `${asOf} (${since}: a repeat may differ)`;
}

/** The phrase for the place from which the rows were read. */
export function standbyLine({ replayedUntil, lagMs, lagBytes }: StandbyRead): string {
  if (lagBytes === 0) return `a standby that had all of the primary at ${replayedUntil}`;
  return `a standby, ${behind({ lagMs, lagBytes })}: it had what was committed before ${replayedUntil}`;
}

/** The lag of a standby in a phrase. */
export const behind = ({ lagMs, lagBytes }: Pick<StandbyRead, "lagMs" | "lagBytes">): string =>
  `${(lagMs / 1_000).toFixed(1)} s and ${counted(lagBytes, "byte")} behind the primary`;

function coverageLine({ coveragePercent, readUntil, lastRun }: Proof): string {
  const from = readUntil === null ? "not from the first record on" : `all of it before ${readUntil}`;
  const run = lastRun === null ? "no run yet" : `last run ${lastRun}`;
  return `${coveragePercent} % of the time up to the end of the period is proved, ${from}; ${run}`;
}

/** Start of `resultLine` while a period has not ended but is proved so far. */
export const soFar = "SO FAR";

/** The verdict in a sentence, and what to do about it. */
export function resultLine({ proof, period, asOf }: Pick<ReportFacts, "proof" | "period" | "asOf">): string {
  const { verdict, openFindings, openWarnings, readUntil } = proof;
  if (verdict === "INCOMPLETE") {
    if (readUntil !== null && Date.parse(asOf) < Date.parse(period.toUtc)) {
      return `${soFar}, proved until ${readUntil}; the period ends at ${period.toUtc}`;
    }
    return (
      `INCOMPLETE: not everything before ${period.toUtc} was read and proved ("${tallyhook("reconcile")}" reads ` +
      "the rest)"
    );
  }
  if (verdict === "PASS") {
    return openWarnings === "0" ? "PASS" : `PASS (${counted(openWarnings, "warning is", "warnings are")} open)`;
  }
  return openFindings === "0"
    ? "FAIL: rows of this report differ (column outcome)"
    : `FAIL: ${counted(openFindings, "finding is", "findings are")} open ("${tallyhook("report exceptions")}" ` +
        "lists them)";
}

export type Verdict = "PASS" | "FAIL" | "INCOMPLETE";

/** The proof of a period by reconciliation, up to its end. */
export interface Proof {
  verdict: Verdict;
  /** The proved share of the time up to the end of the period, for the resource with the least. */
  coveragePercent: string;
  /** Everything created before this time is proved; null if not even the first record is. */
  readUntil: string | null;
  lastRun: string | null;
  /** Serious findings that are neither healed nor acknowledged. */
  openFindings: string;
  openWarnings: string;
}

/** Reads verdict and coverage from `reports.verdict`, the one definition of both. */
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
