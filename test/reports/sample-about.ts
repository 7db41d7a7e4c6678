import type { ReportFacts } from "../../src/parts/reports/base/report-facts.ts";

/** What stands above the rows of a sample. */
export const about: ReportFacts = {
  report: "refunds",
  explains: "what it answers",
  period: {
    from: "2026-10-01",
    to: "2026-11-30",
    timeZone: "Europe/Berlin",
    fromUtc: "2026-09-30T22:00:00Z",
    toUtc: "2026-11-30T23:00:00Z",
  },
  asOf: "2026-12-01T00:00:00.000Z",
  isLive: false,
  currency: null,
  close: null,
  proof: {
    verdict: "PASS",
    coveragePercent: "100.00",
    readUntil: "2026-12-01T00:00:00Z",
    lastRun: "7",
    openFindings: "0",
    openWarnings: "0",
  },
  rows: 4,
  sha256: "ab".repeat(32),
};
