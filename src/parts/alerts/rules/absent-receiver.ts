import type { Knex } from "knex";
import { tallyhook } from "../../../platform/command-line.ts";
import { counted } from "../../../platform/readable-text.ts";
import { count } from "../setting-schemas.ts";
import { watch } from "../watch.ts";
import { headlineText, reconcileAfterMissedWebhooks } from "./wording.ts";

/** A question that the sweep asks the receivers. */
interface ReceiverQuestions {
  /** Their heartbeats; `presence` null where none ever ran. */
  receivers(
    db: Knex,
    afterMinutes: number,
  ): Promise<{ presence: { isAbsent: boolean; unready: number; lastReadyAt: Date } | null }>;
}

/** No receiver takes webhooks: none runs, or those that run cannot store events. */
export const absentReceiver = watch({
  rule: "receiver_absent",
  about: 'No receiver has been able to take a webhook for "afterMinutes" minutes; a restart takes less.',
  severity: "critical",
  settings: { afterMinutes: count(1, 1_440, 2) },
  clock: "service",
  read: (db, { settings }, { receivers }: ReceiverQuestions) => receivers(db, settings.afterMinutes),
  begins({ presence }, { settings, localTime, shortTime, watched }) {
    // After a time without sweeps, such as a machine's sleep, the receivers get a sweep's time for their heartbeats.
    if (presence?.isAbsent !== true || watched.gapMs > settings.afterMinutes * 60_000) return null;
    const { lastReadyAt, unready } = presence;
    return {
      key: "silence:receiver",
      title: headlineText({
        lead: `No receiver has taken webhooks since ${shortTime(lastReadyAt)}`,
        cause:
          unready === 0
            ? "none runs"
            : `${counted(unready, "runs and cannot store events", "run and cannot store events")}`,
        next: "The service gets no 2xx",
      }),
      advice:
        (unready === 0
          ? `Read the log of the last one, then start it again: "${tallyhook("receiver")}". `
          : "GET /readyz of the receiver names what it lacks, and its log says why. ") +
        `The service sends again what was refused, for a limited time. Then run "${tallyhook("reconcile")}": it ` +
        "reads what is missing.",
      facts: [
        { label: "Since", value: localTime(lastReadyAt) },
        { label: "Run and cannot store", value: String(unready) },
      ],
      storedFacts: { since: lastReadyAt.toISOString(), unready },
    };
  },
  end: { title: "A receiver takes webhooks again", advice: `${reconcileAfterMissedWebhooks}.` },
  samples({ at }) {
    const presence = { isAbsent: true, lastReadyAt: new Date(at.getTime() - 24 * 3_600_000) };
    return {
      "no receiver": { presence: { ...presence, unready: 0 } },
      "a receiver that cannot store": { presence: { ...presence, unready: 2 } },
    };
  },
});
