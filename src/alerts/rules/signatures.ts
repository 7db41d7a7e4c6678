import type { Condition, End } from "./condition.ts";
import type { AlertSettings } from "../settings.ts";
import { counted } from "../../platform/counted.ts";
import { headlineText, missedComesBack } from "./wording.ts";

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
  const why = isStale ? "signature expired" : "bad signature";
  return {
    key: `signature:${kind}`,
    rule: "signature_failures",
    severity: rule.severity,
    title: headlineText({
      lead:
        `${counted(failures, "webhook")} rejected (${why}) in ${rule.withinMinutes} min, ` +
        `${accepted} accepted`,
      next: isStale ? "Wrong clock, or old ones replayed?" : "Rotated secret, or someone probing?",
    }),
    advice: isStale
      ? 'Compare the clocks: "npx tallyhook doctor" shows how far this machine is from the service; mend NTP. If ' +
        "the clocks agree, " +
        'somebody sends old deliveries again: they change nothing. What was refused comes back with "npx ' +
        'tallyhook reconcile".'
      : `${accepted === 0 ? "Nothing was accepted meanwhile, so the secret is probably wrong" : "Others were accepted meanwhile, so the secret is probably right and somebody is guessing"}. ` +
        'Run "npx tallyhook endpoint list": a rotation that was made elsewhere shows there, and "npx tallyhook ' +
        'secrets add" stores the new ' +
        'secret. "npx tallyhook signature explain" says why one request was refused. What was refused comes back ' +
        'with "npx tallyhook reconcile".',
    facts: [
      { label: `In ${rule.withinMinutes} minutes`, value: String(failures) },
      { label: "Accepted meanwhile", value: String(accepted) },
    ],
    kept: { failures, accepted },
    measures: { rejected: failures },
    at,
  };
}

export const signatureEnds = {
  failed: {
    title: "Webhook signatures verify again",
    advice: `If the secret was the reason, what was refused were real events: ${missedComesBack}.`,
  },
  stale: {
    title: "Webhooks are signed in time again",
    advice: `If the clock was the reason, what was refused were real events: ${missedComesBack}.`,
  },
} as const satisfies Readonly<Record<string, End>>;
