import type { Condition } from "./condition.ts";
import type { AlertSettings } from "../settings.ts";

export interface SignatureFailures {
  kind: "failed" | "stale";
  failures: number;
  accepted: number;
}

/** Deliveries that were refused for their signature, above a rate. Pure. */
export function signatureCondition(
  { signature_failures: rule }: AlertSettings["rules"],
  { kind, failures, accepted }: SignatureFailures,
  at: Date,
): Condition {
  const isStale = kind === "stale";
  return {
    key: `signature:${kind}`,
    rule: "signature_failures",
    severity: rule.severity,
    title: isStale
      ? `${failures} deliveries were signed at a time outside the window`
      : `${failures} deliveries did not verify`,
    advice: isStale
      ? "The signatures are right and the clocks differ, or something replays old deliveries: compare this machine's clock (NTP) " +
        "with the service's (npx tallyhook doctor). What was refused is healed at night."
      : 'A secret was rotated elsewhere, or somebody tries the door. "npx tallyhook secrets list" and "npx tallyhook endpoint list" ' +
        'tell the first, "npx tallyhook signature explain" what a captured request needs. What was refused is healed at night.',
    facts: [
      { label: `In ${rule.withinMinutes} minutes`, value: String(failures) },
      { label: "Accepted meanwhile", value: String(accepted) },
    ],
    kept: { failures, accepted },
    measures: { rejected: failures },
    at,
  };
}
