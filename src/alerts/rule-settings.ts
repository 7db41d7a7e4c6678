import { z } from "zod";
import { alertSeverities } from "./message.ts";
import type { AlertSeverity } from "./message.ts";
import {
  byName,
  listOf,
  oneOf,
  settingsObject,
  should,
  wholeNumber,
  yesOrNo,
} from "./setting-words.ts";

export const severity = oneOf(alertSeverities);
export const channelNames = listOf(
  z.string(should('the name of a channel, such as "log"')),
  '["log"]',
);

/** What every rule has: whether it is on, how urgent it is, and who hears of it (left out: `defaultChannels`). */
const rule = <Thresholds extends z.core.$ZodLooseShape>(
  fallback: AlertSeverity,
  thresholds: Thresholds,
) =>
  settingsObject({
    enabled: yesOrNo.default(true),
    severity: severity.default(fallback),
    channels: channelNames.optional(),
    ...thresholds,
    // Every key has a default or may be left out, which the type of any shape cannot show.
  }).prefault({} as never);

const count = (min: number, max: number, fallback: number) =>
  wholeNumber(min, max).default(fallback);

const share = should("a share above 0 and up to 1, such as 0.8 for 80 %");
const ratio = (fallback: number) => z.number(share).gt(0, share).max(1, share).default(fallback);

const factorWords = should("a number from 1.1 to 100, such as 3");
const amountWords = should("a whole number of minor units above 0, such as 50000 for 500.00 EUR");

/** Minor units by currency, such as `{"USD": 50000}`; a currency that is not named has no high amounts. */
const highAmountMinor = byName(
  { pattern: /^[A-Z]{3}$/, should: "a currency in three capital letters, such as EUR" },
  z.int(amountWords).positive(amountWords),
  '{ "EUR": 50000 }, in minor units',
).default({});

/** Every rule with its thresholds. What each of them watches is told in docs/operations.md. */
export const ruleSettings = settingsObject({
  /** A one-time order was declined. */
  decline: rule("warning", { highAmountMinor }),
  /** The first charge of a subscription was declined: nothing retries it. */
  dunning_first: rule("error", { highAmountMinor }),
  /** A renewal was declined and will be retried. */
  dunning_renewal: rule("warning", { highAmountMinor, contactAtAttempt: count(1, 20, 3) }),
  /** The last retry of a renewal is near: told on the daily list, so that a day is left to write to the customer. */
  dunning_last_retry: rule("error", {
    withinHours: count(1, 240, 48),
    lastAttempt: count(1, 20, 3),
  }),
  /** No retry follows any more. From `dunning_renewal.highAmountMinor` on it is critical. */
  dunning_final: rule("error", {}),
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
    factor: z.number(factorWords).min(1.1, factorWords).max(100, factorWords).default(3),
    atLeast: count(1, 1_000_000, 20),
    withinMinutes: count(1, 1_440, 10),
    baselineDays: count(1, 60, 14),
  }),
}).prefault({});
