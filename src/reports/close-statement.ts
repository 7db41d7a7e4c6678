import { createHash } from "node:crypto";
import type { About } from "./about.ts";

/** What a close says of its month. */
export interface CloseFacts {
  /** `YYYY-MM`. */
  month: string;
  /** IANA name. */
  timeZone: string;
  /** ISO 8601. */
  asOf: string;
  verdict: string;
  reason: string | null;
}

/**
 * SHA-256 of a close: of what it says of its month, and of each report's name, result and rows, as JSON arrays, a line each. Whoever
 * keeps it can tell whether any of these is not what was signed. Pure.
 */
export function closeSha256(
  { month, timeZone, asOf, verdict, reason }: CloseFacts,
  reports: readonly Pick<About, "report" | "period" | "proof" | "rows" | "sha256">[],
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
  return createHash("sha256")
    .update(lines.map((line) => `${JSON.stringify(line)}\n`).join(""))
    .digest("hex");
}
