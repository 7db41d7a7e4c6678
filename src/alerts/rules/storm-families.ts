import type { RuleName } from "../settings.ts";
import type { Family } from "./story.ts";

/** What is common to the alerts of a family, and how their crowd is told. */
export interface StormFamily {
  /** By whose severity and channels the incident is told. */
  rule: RuleName;
  /** The rules whose alerts are held back. */
  holds: readonly RuleName[];
  /** How the keys of its alerts begin. */
  keys: readonly string[];
  /** How the stages that count begin. */
  stages: string;
  /** So many in a window are told one by one; null: by the usual rate. */
  limit: number | null;
  title: (count: number, withinMinutes: number) => string;
  advice: string;
  /** What is said when the crowd has passed. */
  end: string;
}

export const stormFamilies: Readonly<Record<Family, StormFamily>> = {
  declines: {
    rule: "decline_storm",
    holds: ["decline", "dunning_first", "dunning_renewal", "dunning_final"],
    keys: ["decline:", "dunning:"],
    stages: "attempt:",
    limit: null,
    title: (count, minutes) =>
      `Declines at a multiple of their usual rate: ${count} in ${minutes} minutes`,
    advice:
      "Look at the codes: one code for all points to the gateway or to our configuration, fraud codes to an attack " +
      "with stolen cards. The single alerts are held back meanwhile: npx tallyhook alerts list --rule decline.",
    end: "Declines are back to their usual rate",
  },
  "late-declines": {
    rule: "decline",
    holds: ["decline", "dunning_first", "dunning_renewal", "dunning_final"],
    keys: ["decline:", "dunning:"],
    stages: "attempt:",
    limit: 50,
    title: (count, minutes) => `${count} declines were delivered within ${minutes} min, late`,
    advice:
      "The charges were made at their usual rate and their events came together, so this is no attack: the receiver or the service " +
      'was away. "npx tallyhook reconcile" finds what is still missing.',
    end: "Late declines have all come",
  },
  dead: {
    rule: "event_dead",
    holds: ["event_dead"],
    keys: ["dead:"],
    stages: "opened",
    limit: 10,
    title: (count, minutes) => `Events are dying: ${count} in ${minutes} minutes`,
    advice:
      "They have one cause as a rule, such as a new format: npx tallyhook events list --state dead. Once it is mended: npx tallyhook events replay --dead.",
    end: "No more events die in crowds",
  },
  chargebacks: {
    rule: "chargeback",
    holds: ["chargeback"],
    keys: ["chargeback:"],
    stages: "opened",
    limit: 20,
    title: (count, minutes) => `Chargebacks come in crowds: ${count} in ${minutes} minutes`,
    advice:
      "Stolen cards, a batch of the bank's, or the first fill. Each has its own time limit: npx tallyhook alerts list --rule chargeback.",
    end: "Chargebacks come one by one again",
  },
  "new-values": {
    rule: "event_unknown",
    holds: ["event_unknown", "event_duplicate_id"],
    keys: ["new-value:", "event-id:"],
    stages: "opened",
    limit: 10,
    title: (count, minutes) => `New values by the dozen: ${count} in ${minutes} minutes`,
    advice:
      "The interface has changed, or a field holds free text now. All were stored as they came: npx tallyhook alerts list --rule event_unknown.",
    end: "New values come one by one again",
  },
  "last-retries": {
    rule: "dunning_last_retry",
    holds: ["dunning_last_retry"],
    keys: ["dunning:"],
    stages: "last-retry:",
    limit: 20,
    title: (count) => `The last retry of ${count} renewals is near`,
    advice:
      "Too many to tell one by one: npx tallyhook alerts list --rule dunning_renewal. Their owners should hear of them before.",
    end: "Last retries come one by one again",
  },
  "card-numbers": {
    rule: "card_number",
    holds: ["card_number"],
    keys: ["card-number:"],
    stages: "opened",
    limit: 10,
    title: (count, minutes) => `Card numbers in ${count} fields within ${minutes} minutes`,
    advice:
      "All were masked. Something writes whole forms, or the keys of metadata are made up one by one. Have it stopped at its " +
      "source: npx tallyhook alerts list --rule card_number names the fields.",
    end: "No more fields with card numbers come in crowds",
  },
  undescribed: {
    rule: "alert_undescribed",
    holds: ["alert_undescribed"],
    keys: ["undescribed:"],
    stages: "opened",
    limit: 10,
    title: (count, minutes) => `${count} alerts could not be described within ${minutes} minutes`,
    advice:
      "They have one cause as a rule: a new shape of data, or a fault of this version. All data was applied. The worker's " +
      "log has the error.",
    end: "Alerts can be described again",
  },
};
