import type { Knex } from "knex";
import { tallyhook } from "../../../platform/command-line.ts";
import { counted } from "../../../platform/readable-text.ts";
import type { Begun } from "../condition.ts";
import { count } from "../setting-schemas.ts";
import { watch } from "../watch.ts";
import { headlineText, reconcileAfterMissedWebhooks } from "./wording.ts";

/** The receivers' answers to wrong and to expired signatures, kept apart. */
const reasonsOf = {
  failed: ["no_match", "no_secret", "missing_header", "malformed_header", "duplicate_header"],
  stale: ["stale"],
} as const;

interface Answers {
  failed: number;
  stale: number;
  accepted: number;
}

/** Signature failures above a rate. */
export const signatureFailures = watch({
  rule: "signature_failures",
  about: 'At least "count" webhooks with a wrong or an expired signature within "withinMinutes" minutes.',
  severity: "critical",
  settings: { count: count(1, 1_000_000, 20), withinMinutes: count(1, 1_440, 5) },
  read: (db, { settings }) => countAnswers(db, settings.withinMinutes),
  begins: (answers, { settings }) =>
    (["failed", "stale"] as const)
      .filter((kind) => answers[kind] >= settings.count)
      .map((kind) => refused(kind, answers, settings.withinMinutes)),
  // Only below half the threshold, so that a rate around the threshold makes one alert and not many.
  isOver: (key, answers, { settings }) => answers[kindOf(key)] < settings.count / 2,
  end: (key) =>
    kindOf(key) === "failed"
      ? {
          title: "Webhook signatures verify again",
          advice: `If our secret was wrong, real events were refused. ${reconcileAfterMissedWebhooks}.`,
        }
      : {
          title: "Webhook signatures are in time again",
          advice: `If a clock was wrong, real events were refused. ${reconcileAfterMissedWebhooks}.`,
        },
  samples: () => ({
    "bad signatures": { failed: 25, stale: 0, accepted: 66 },
    "expired signatures": { failed: 0, stale: 25, accepted: 66 },
  }),
});

const kindOf = (key: string): keyof typeof reasonsOf => (key === "signature:stale" ? "stale" : "failed");

/** How many webhooks were refused for their signatures, and accepted. One statement. */
async function countAnswers(db: Knex, withinMinutes: number): Promise<Answers> {
  const { rows } = await db.raw<{ rows: Record<keyof Answers, string>[] }>(
    `select coalesce(sum(times) filter (where reason = any(?::text[])), 0) as failed,
            coalesce(sum(times) filter (where reason = any(?::text[])), 0) as stale,
            coalesce(sum(times) filter (where reason = 'accepted'), 0) as accepted
     from receiver.answers_by_minute where minute > now() - make_interval(mins => ?)`,
    [[...reasonsOf.failed], [...reasonsOf.stale], withinMinutes],
  );
  const { failed = 0, stale = 0, accepted = 0 } = rows[0] ?? {};
  return { failed: Number(failed), stale: Number(stale), accepted: Number(accepted) };
}

/** Deliveries that were refused for their signature, above a rate. */
function refused(kind: keyof typeof reasonsOf, answers: Answers, withinMinutes: number): Begun {
  const { [kind]: failures, accepted } = answers;
  const isStale = kind === "stale";
  const why = isStale ? "signature expired" : "bad signature";
  return {
    key: `signature:${kind}`,
    title: headlineText({
      lead: `${counted(failures, "webhook")} rejected (${why}) in ${withinMinutes} min, ` + `${accepted} accepted`,
      next: isStale ? "Wrong clock, or a replay?" : "Rotated secret, or someone probing?",
    }),
    advice: isStale
      ? `Compare the clocks: "${tallyhook("doctor")}" shows how far this machine is from the service. If it is ` +
        "off, set it by NTP. If the clocks agree, someone is sending old deliveries again: they change nothing. " +
        correctsRefused
      : (accepted === 0
          ? "No webhook was accepted, so our secret is probably wrong. "
          : "Others were accepted in that time, so someone is guessing, or our secret was wrong for a part of that " +
            "time. ") +
        `If it is wrong, get the one of the service and store it: "${tallyhook("secrets add")}". If it cannot be ` +
        `had, "${tallyhook("endpoint rotate")}" makes another one and stores it. ` +
        `"${tallyhook("signature explain")}" says why a captured request was refused. ` +
        correctsRefused,
    facts: [
      { label: `In ${withinMinutes} minutes`, value: String(failures) },
      { label: "Accepted in that time", value: String(accepted) },
    ],
    storedFacts: { failures, accepted },
    measures: { rejected: failures },
  };
}

const correctsRefused = `"${tallyhook("reconcile")}" corrects the mirror where real events were refused.`;
