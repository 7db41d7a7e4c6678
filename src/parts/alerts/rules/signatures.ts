import type { Knex } from "knex";
import { counted } from "../../../platform/readable-text.ts";
import type { AlertContext } from "../alert-context.ts";
import { clear, raise } from "../raise-conditions.ts";
import type { AlertSettings } from "../settings.ts";
import type { Condition, End } from "../timeline.ts";
import { headlineText, reconcileAfterMissedWebhooks } from "./wording.ts";

/** The receivers' answers to wrong and to expired signatures, kept apart. */
const reasonsOf = {
  failed: ["no_match", "no_secret", "missing_header", "malformed_header", "duplicate_header"],
  stale: ["stale"],
} as const;

/** Reports signature failures above a rate. Needs a transaction; idempotent. */
export async function watchSignatures(trx: Knex.Transaction, alertContext: AlertContext): Promise<void> {
  const { count, withinMinutes } = alertContext.settings.rules.signature_failures;
  const at = alertContext.clock.now();
  for (const kind of ["failed", "stale"] as const) {
    const { rows } = await trx.raw<{ rows: { failures: string; accepted: string }[] }>(
      `select coalesce(sum(times) filter (where reason = any(?::text[])), 0) as failures,
              coalesce(sum(times) filter (where reason = 'accepted'), 0) as accepted
       from receiver.answers_by_minute where minute > now() - make_interval(mins => ?)`,
      [[...reasonsOf[kind]], withinMinutes],
    );
    const [failures, accepted] = [Number(rows[0]?.failures), Number(rows[0]?.accepted)];
    const condition = signatureCondition(alertContext.settings.rules, { kind, failures, accepted }, at);
    if (failures >= count) await raise(trx, alertContext, [condition], "sweep");
    // Ends the alert only below half the threshold, so that a rate around the threshold makes one alert and not many.
    else if (failures < count / 2) {
      await clear(trx, alertContext, [{ key: condition.key, end: signatureEnds[kind], at }], "sweep");
    }
  }
}

export interface SignatureFailures {
  kind: "failed" | "stale";
  failures: number;
  accepted: number;
}

/** Deliveries that were refused for their signature, above a rate. */
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
      lead: `${counted(failures, "webhook")} rejected (${why}) in ${rule.withinMinutes} min, ` + `${accepted} accepted`,
      next: isStale ? "Wrong clock, or a replay?" : "Rotated secret, or someone probing?",
    }),
    advice: isStale
      ? 'Compare the clocks: "node src/bin/tallyhook.js doctor" shows how far this machine is from the service. If ' +
        "it is off, set " +
        "it by NTP. If the clocks agree, someone is sending old deliveries again: they change nothing. " +
        correctsRefused
      : (accepted === 0
          ? "No webhook was accepted, so our secret is probably wrong. "
          : "Others were accepted meanwhile, so someone is guessing, or our secret was wrong for a part of that time. ") +
        'If it is wrong, get the one of the service and store it: "node src/bin/tallyhook.js secrets add". If nobody ' +
        'can get it, "node src/bin/tallyhook.js endpoint rotate" makes another one and stores it. ' +
        '"node src/bin/tallyhook.js signature explain" says why a captured request was refused. ' +
        correctsRefused,
    facts: [
      { label: `In ${rule.withinMinutes} minutes`, value: String(failures) },
      { label: "Accepted meanwhile", value: String(accepted) },
    ],
    storedFacts: { failures, accepted },
    measures: { rejected: failures },
    at,
  };
}

const correctsRefused = '"node src/bin/tallyhook.js reconcile" corrects the mirror where real events were refused.';

export const signatureEnds = {
  failed: {
    title: "Webhook signatures verify again",
    advice: `If our secret was wrong, real events were refused. ${reconcileAfterMissedWebhooks}.`,
  },
  stale: {
    title: "Webhook signatures are in time again",
    advice: `If a clock was wrong, real events were refused. ${reconcileAfterMissedWebhooks}.`,
  },
} as const satisfies Readonly<Record<string, End>>;
