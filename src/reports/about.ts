import type { Period } from "./period.ts";
import type { Proof } from "./verdict.ts";
import { counted } from "../platform/counted.ts";

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
