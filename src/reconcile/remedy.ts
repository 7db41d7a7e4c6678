import type { Finding } from "./findings.ts";

/** Says on a finding what writes the row that the order of versions keeps as it is: only a person can decide that. Pure. */
export const withRemedy = (finding: Finding): Finding => ({
  ...finding,
  evidence: {
    ...finding.evidence,
    remedy:
      "No read can change this row: it bears a later version than the service shows, or fields that no read shows. To " +
      "write it as the service shows it: " +
      `npx tallyhook heal ${finding.resource} ${finding.objectId} --from-service --reason "…"`,
  },
});
