import { z } from "zod";
import { alertSeverities } from "./message.ts";
import type { AlertSeverity } from "./message.ts";
import { settingsObject } from "./settings-object.ts";

export const severity = z.enum(alertSeverities);
export const channelNames = z.array(z.string()).min(1);

/** What every rule has: whether it is on, how urgent it is, and who hears of it (left out: `defaultChannels`). */
const rule = <Thresholds extends z.core.$ZodLooseShape>(
  fallback: AlertSeverity,
  thresholds: Thresholds,
) =>
  settingsObject({
    enabled: z.boolean().default(true),
    severity: severity.default(fallback),
    channels: channelNames.optional(),
    ...thresholds,
    // Every key has a default or may be left out, which the type of any shape cannot show.
  }).prefault({} as never);

const count = (min: number, max: number, fallback: number) =>
  z.int().min(min).max(max).default(fallback);
const ratio = (fallback: number) => z.number().gt(0).max(1).default(fallback);

/** Minor units by currency, such as `{"USD": 50000}`; a currency that is not named has no high amounts. */
const highAmountMinor = z.record(z.string().regex(/^[A-Z]{3}$/), z.int().positive()).default({});

/** Every rule with its thresholds. What each of them watches is told in docs/operations.md. */
export const ruleSettings = settingsObject({
  /** A one-time order was declined. */
  decline: rule("warning", { highAmountMinor }),
  /** The first charge of a subscription was declined: nothing retries it. */
  dunning_first: rule("error", { highAmountMinor }),
  /** A renewal was declined and will be retried. */
  dunning_renewal: rule("warning", { highAmountMinor, contactAtAttempt: count(1, 20, 3) }),
  /** The last retry of a renewal is near. */
  dunning_last_retry: rule("error", {
    withinHours: count(1, 240, 24),
    lastAttempt: count(1, 20, 3),
  }),
  /** No retry follows any more. */
  dunning_final: rule("critical", {}),
  chargeback: rule("critical", {}),
  chargeback_ratio: rule("error", { share: ratio(0.8) }),
  reconcile_drift: rule("error", {}),
  reconcile_incomplete: rule("error", {}),
  reconcile_missing: rule("critical", { afterHours: count(1, 240, 26) }),
  identity_broken: rule("critical", {}),
  event_dead: rule("error", {}),
  /** A state is dated later than it can be. */
  event_future: rule("error", {}),
  event_unknown: rule("warning", {}),
  event_duplicate_id: rule("warning", {}),
  card_number: rule("critical", {}),
  /** An alert could not be described, because of the data it is about or a fault of the program. */
  alert_undescribed: rule("error", {}),
  signature_failures: rule("critical", {
    count: count(1, 1_000_000, 20),
    withinMinutes: count(1, 1_440, 5),
  }),
  endpoint: rule("critical", {}),
  silence_retry: rule("error", { afterHours: count(1, 240, 24) }),
  silence_renewal: rule("error", { afterHours: count(1, 240, 24) }),
  silence_events: rule("critical", {
    usuallyAtLeast: count(1, 1_000_000, 10),
    weeks: count(1, 12, 4),
  }),
  silence_worker: rule("critical", { afterMinutes: count(1, 1_440, 5) }),
  /** Declines at a multiple of their usual rate become one incident; the single ones are held back. */
  decline_storm: rule("critical", {
    factor: z.number().min(1.1).max(100).default(3),
    atLeast: count(1, 1_000_000, 20),
    withinMinutes: count(1, 1_440, 10),
    baselineDays: count(1, 60, 14),
  }),
}).prefault({});
