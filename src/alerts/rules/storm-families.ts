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
    title: (count, minutes) => `${count} declines in ${minutes} min, a multiple of what is usual`,
    advice:
      'Look at the codes: one code for nearly all means that the gateway or our setup is broken ("npx tallyhook doctor", ' +
      "the service's status page); fraud codes mean that somebody tries stolen cards: switch on the checkout's " +
      "protection.",
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
    title: (count, minutes) => `${count} events could not be applied in ${minutes} min`,
    advice:
      'They have one cause as a rule, such as a new format: "npx tallyhook events list --state dead" shows it. ' +
      "Once it is mended: " +
      '"npx tallyhook events replay --dead".',
    end: "Dead-event storm over",
  },
  chargebacks: {
    rule: "chargeback",
    holds: ["chargeback"],
    keys: ["chargeback:"],
    stages: "opened",
    limit: 20,
    title: (count, minutes) => `${count} chargebacks in ${minutes} min`,
    advice:
      "Stolen cards, a batch of one bank, or the first import. Each has a time limit of its own: " +
      '"npx tallyhook alerts list --rule chargeback" and "npx tallyhook report chargebacks" list them.',
    end: "Chargebacks come one by one again",
  },
  "new-values": {
    rule: "event_unknown",
    holds: ["event_unknown", "event_duplicate_id"],
    keys: ["new-value:", "event-id:"],
    stages: "opened",
    limit: 10,
    title: (count, minutes) => `${count} unknown values in ${minutes} min`,
    advice:
      "The service has changed its interface, or a field holds free text now. All were stored as they came; the " +
      "changelog says what they " +
      'mean, and "npx tallyhook alerts list --rule event_unknown" lists them.',
    end: "Unknown values come one by one again",
  },
  "card-numbers": {
    rule: "card_number",
    holds: ["card_number"],
    keys: ["card-number:"],
    stages: "opened",
    limit: 10,
    title: (count, minutes) => `${count} fields with card numbers in ${minutes} min`,
    advice:
      "All were masked here. Something writes whole forms, or the keys of metadata are made up one by one: stop " +
      "it at its source. " +
      '"npx tallyhook alerts list --rule card_number" names the fields.',
    end: "Card-number storm over",
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
