import type { About } from "./about.ts";
import { allReports } from "./catalogue/all.ts";
import { sha256Of } from "./close-manifest.ts";

type SignedReport = Pick<About, "report" | "period" | "proof" | "rows" | "sha256">;

/** What a close of an earlier version says of its month. */
interface Stated {
  /** `YYYY-MM`. */
  month: string;
  /** IANA name. */
  timeZone: string;
  /** ISO 8601 with milliseconds. */
  asOf: string;
  verdict: string;
  reason: string | null;
}

/**
 * SHA-256 of a close whose `sha256_covers` is 'results': of what it says of its month, and of each report's name,
 * result and rows, as JSON arrays, a line each. No close is made so any more. Pure.
 */
export function resultsSha256(
  { month, timeZone, asOf, verdict, reason }: Stated,
  reports: readonly SignedReport[],
): string {
  const signed = reports.map(({ report, period, proof, rows, sha256 }) => [
    report,
    [period.fromUtc, period.toUtc],
    [proof.verdict, proof.coveragePercent, proof.readUntil, proof.lastRun],
    [proof.openFindings, proof.openWarnings],
    rows,
    sha256,
  ]);
  const byName = signed.sort(([a = ""], [b = ""]) => (a < b ? -1 : 1));
  const lines = [[month, timeZone, asOf, verdict, reason], ...byName];
  return sha256Of(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
}

/**
 * SHA-256 of a close whose `sha256_covers` is 'rows': of the reports' names and the hashes of their rows, in the
 * catalogue's order. Pure.
 */
export function rowsSha256(reports: readonly Pick<SignedReport, "report" | "sha256">[]): string {
  const place = (name: string): number => allReports.findIndex((report) => report.name === name);
  const inOrder = [...reports].sort((a, b) => place(a.report) - place(b.report));
  return sha256Of(inOrder.map(({ report, sha256 }) => `${report} ${sha256}\n`).join(""));
}
