import { z } from "zod";
import { lateBackupHours } from "../../core/mirror/backups.ts";
import { dunningDefaults } from "../../core/mirror/dunning/stages.ts";
import type { Path } from "../../platform/json-with-comments.ts";
import { nearestName } from "../../platform/nearest-name.ts";
import { timeZone } from "../../platform/setting-kinds.ts";
import { channelSettings } from "./channels/channel-kinds.ts";
import { destinationSettings } from "./channels/http-post.ts";
import { type AlertSeverity, alertSeverities } from "./message.ts";
import {
  byName,
  listOf,
  oneOf,
  settingsObject,
  expected,
  wholeNumber,
  yesOrNo,
} from "../../platform/setting-schemas.ts";
import { type Problem, readSettingsFile } from "../../platform/settings-file.ts";
import type { ReadFile } from "../../platform/settings.ts";

const severity = oneOf(alertSeverities);
const channelNames = listOf(z.string(expected('the name of a channel, such as "log"')), '["log"]');

/** The settings of every rule: whether it is on, its severity, and its channels (if omitted: `defaultChannels`). */
const rule = <Thresholds extends z.core.$ZodLooseShape>(fallback: AlertSeverity, thresholds: Thresholds) =>
  settingsObject({
    enabled: yesOrNo.default(true),
    severity: severity.default(fallback),
    channels: channelNames.optional(),
    ...thresholds,
    // Every key has a default or is optional, which the type of an arbitrary shape cannot express.
  }).prefault({} as never);

const count = (min: number, max: number, fallback: number) => wholeNumber(min, max).default(fallback);

const share = expected("a share above 0 and up to 1, such as 0.8 for 80 %");
const ratio = (fallback: number) => z.number(share).gt(0, share).max(1, share).default(fallback);

const factorWords = expected("a number from 1.1 to 100, such as 3");
const amountWords = expected("a whole number of minor units above 0, such as 50000 for 500.00 EUR");

/** Minor units by currency, such as `{"USD": 50000}`. A currency that is not named has no high amounts. */
const highAmountMinor = byName(
  { pattern: /^[A-Z]{3}$/, should: "a currency in three capital letters, such as EUR" },
  z.int(amountWords).positive(amountWords),
  '{ "EUR": 50000 }, in minor units',
).default({});

/** Every rule with its thresholds. docs/operations.md describes each rule. */
const ruleSettings = settingsObject({
  /** A one-time order was declined. */
  decline: rule("warning", { highAmountMinor }),
  /** The first charge of a subscription was declined: nothing retries it. */
  dunning_first: rule("error", { highAmountMinor }),
  /** A renewal was declined and will be retried. */
  dunning_renewal: rule("warning", {
    highAmountMinor,
    contactAtAttempt: count(1, 20, dunningDefaults.contactAtAttempt),
  }),
  /** The last retry of a renewal is near. Sent on the daily list, which leaves a day to write to the customer. */
  dunning_last_retry: rule("error", {
    withinHours: count(1, 240, dunningDefaults.withinHours),
    lastAttempt: count(1, 20, dunningDefaults.lastAttempt),
  }),
  /** No further retry follows. Critical from `dunning_renewal.highAmountMinor` on. */
  dunning_final: rule("error", {}),
  chargeback: rule("critical", {}),
  chargeback_ratio: rule("error", { share: ratio(0.8) }),
  reconcile_drift: rule("error", {}),
  reconcile_incomplete: rule("error", {}),
  reconcile_missing: rule("critical", { afterHours: count(1, 240, 26) }),
  identity_broken: rule("critical", {}),
  event_dead: rule("error", {}),
  /** A state is dated in the future. */
  event_future: rule("error", {}),
  event_unknown: rule("warning", {}),
  event_duplicate_id: rule("warning", {}),
  card_number: rule("critical", {}),
  /** An alert could not be described, because of its data or a fault of the program. */
  alert_undescribed: rule("error", {}),
  /** The inbox or the feed has no partition ready for what comes next, or rows lie outside of all. */
  inbox_partitions: rule("error", {}),
  /** The disk that holds the embedded database has less than this share free. */
  disk_space: rule("critical", { freePercent: count(1, 50, 10) }),
  /** A consumer of the feed has not read a change for so long. */
  feed_consumer_behind: rule("error", { afterHours: count(1, 240, 1) }),
  /** Changes failed for a handler at their last attempt. */
  handler_dead: rule("error", {}),
  /** A handler failed for all objects. */
  handler_paused: rule("critical", {}),
  /** A handler has left due changes waiting for this long. */
  handler_behind: rule("error", { afterHours: count(1, 240, 1) }),
  /** The process that all handlers share has not run for so long, or ends again and again. */
  handler_host_down: rule("critical", { afterMinutes: count(0, 1_440, 1) }),
  /** A handler's file has not been usable for so long, or ends its process, and the others run without it. */
  handler_quarantined: rule("error", { afterMinutes: count(0, 1_440, 1) }),
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
  receiver_absent: rule("critical", { afterMinutes: count(1, 1_440, 2) }),
  /** No backup has been verified for this long, after any was begun. */
  backup_overdue: rule("error", { afterHours: count(1, 10_000, lateBackupHours) }),
  silence_worker: rule("critical", { afterMinutes: count(1, 1_440, 5) }),
  /** Declines at a multiple of their usual rate become one incident; single alerts are held back. */
  decline_storm: rule("critical", {
    factor: z.number(factorWords).min(1.1, factorWords).max(100, factorWords).default(3),
    atLeast: count(1, 1_000_000, 20),
    withinMinutes: count(1, 1_440, 10),
    baselineDays: count(1, 60, 14),
  }),
}).prefault({});

const words = expected('an address with {id} in its path or query, such as "https://admin.example.com/orders/{id}"');
const template = z.string(words).refine(isTemplate, words).optional();

/** The page of each kind of object. A kind that is omitted has no link. */
export const linkTemplates = settingsObject({
  order: template,
  subscription: template,
  customer: template,
  transaction: template,
}).prefault({});

export type LinkTemplates = z.infer<typeof linkTemplates>;

/** An id must not choose the host, and must not be in a part of the URL that is never sent. */
function isTemplate(text: string): boolean {
  const [one, other] = ["a", "b"].map((id) => text.replaceAll("{id}", id));
  if (one === undefined || other === undefined || one === other) return false;
  if (!URL.canParse(one) || !URL.canParse(other)) return false;
  const [first, second] = [new URL(one), new URL(other)];
  return (
    /^https?:$/.test(first.protocol) &&
    first.username + first.password === "" &&
    first.origin === second.origin &&
    first.pathname + first.search !== second.pathname + second.search
  );
}

const timeWords = expected("a time from 00:00 to 23:59, such as 08:30");
const timeOfDay = z.string(timeWords).regex(/^([01]\d|2[0-3]):[0-5]\d$/, timeWords);
const weekday = oneOf(["mon", "tue", "wed", "thu", "fri", "sat", "sun"]);
const zoneWords = expected(timeZone.should);
const channelName = {
  pattern: /^[a-z][a-z0-9-]{0,39}$/,
  should: "lower-case letters, digits and -, such as on-call",
};
const stepsWords = expected('a list of at most 10 steps, such as [{ "afterMinutes": 30, "channels": ["on-call"] }]');

const schema = settingsObject({
  channels: byName(channelName, channelSettings, '{ "log": { "kind": "stdout" } }').default({
    log: { kind: "stdout", format: "json" },
  }),
  /** The channels of every rule that names none. */
  defaultChannels: channelNames.default(["log"]),
  destinations: destinationSettings,
  rules: ruleSettings,
  /** The zone of times of day and weekdays; if omitted: TALLYHOOK_TIME_ZONE. */
  timeZone: z
    .string(zoneWords)
    .refine((text) => timeZone.schema.safeParse(text).success, zoneWords)
    .optional(),
  /** Alerts of any other severity than these wait until quiet hours end. Null: there are no quiet hours. */
  quietHours: settingsObject({
    from: timeOfDay,
    to: timeOfDay,
    /** The days on which quiet hours begin. */
    days: listOf(weekday, '["mon", "tue"]').default(["mon", "tue", "wed", "thu", "fri", "sat", "sun"]),
    except: z.array(severity, expected('a list such as ["critical"]')).default(["critical"]),
  })
    .nullable()
    .default(null),
  /** How many days alerts and messages are kept (retention.ts). */
  keep: settingsObject({
    /** Since the message was written. Messages hold personal data. */
    messagesDays: wholeNumber(14, 3_650).default(90),
    /** Since the alert ended. The usual rate of declines needs two months. */
    alertsDays: wholeNumber(100, 3_650).default(400),
  }).prefault({}),
  /** Alerts that can wait are sent together. */
  digests: settingsObject({
    /**
     * Lists lost renewals, last retries and unpaid orders, and counts the declines that only wait for their next retry.
     */
    when: oneOf(["hourly", "daily", "off"]).default("daily"),
    dailyAt: timeOfDay.default("08:00"),
    channels: channelNames.optional(),
  }).prefault({}),
  /** Pages for the objects of a message, with `{id}` in place of the id. */
  links: linkTemplates,
  /** Steps for unacknowledged alerts, each counted from when the alert was first sent. */
  escalation: z
    .array(
      settingsObject({
        afterMinutes: wholeNumber(1, 10_080),
        severities: listOf(severity, '["critical"]').default(["critical"]),
        channels: channelNames,
      }),
      stepsWords,
    )
    .max(10, stepsWords)
    .default([]),
});

export type AlertSettings = z.infer<typeof schema>;
export type RuleName = keyof AlertSettings["rules"];

/**
 * The settings of alerts. Null means no file: every rule is on and goes only to the log. Throws one
 * `ConfigurationError` that names every wrong setting with its place and line.
 */
export const loadAlertSettings = (file: string | null, readFile?: ReadFile): AlertSettings =>
  file === null
    ? schema.parse({})
    : readSettingsFile({ file, variable: "ALERT_SETTINGS_FILE", readFile }, schema, (settings) => [
        ...unknownChannels(settings),
        ...contradictions(settings),
      ]);

/** Every rule, independent of a deployment's settings. */
export const ruleNames = Object.keys(loadAlertSettings(null).rules) as RuleName[];

/** Channel names that are used but not defined. */
function unknownChannels(settings: AlertSettings): Problem[] {
  const known = Object.keys(settings.channels);
  return usesOfChannels(settings).flatMap(({ path, names }) =>
    names
      .map((name, index) => ({ name, path: [...path, index] }))
      .filter(({ name }) => !Object.hasOwn(settings.channels, name))
      .map(({ name, path: at }) => ({ path: at, says: unknownChannel(name, known) })),
  );
}

/** Combinations that are wrong although each setting is valid. */
function contradictions({ quietHours, escalation }: AlertSettings): Problem[] {
  const problems: Problem[] = [];
  if (quietHours !== null && quietHours.from === quietHours.to) {
    const says = 'should differ from "from"; for no quiet hours, set quietHours to null';
    problems.push({ path: ["quietHours", "to"], says });
  }
  for (const [index, { afterMinutes }] of escalation.entries()) {
    const before = escalation[index - 1]?.afterMinutes ?? 0;
    if (afterMinutes > before) continue;
    const says = `should be more than the ${before} of the step before it`;
    problems.push({ path: ["escalation", index, "afterMinutes"], says });
  }
  return problems;
}

/** The error for an unknown channel name, with the name that was probably meant, or with those that exist. */
export function unknownChannel(name: string, known: readonly string[]): string {
  const nearest = nearestName(name, known);
  const names = known.length === 0 ? "There are none." : `There are: ${known.join(", ")}.`;
  const hint = nearest === null ? names : `Did you mean "${nearest}"?`;
  return `there is no channel ${JSON.stringify(name)}. ${hint}`;
}

function usesOfChannels(settings: AlertSettings): { path: Path; names: readonly string[] }[] {
  return [
    { path: ["defaultChannels"], names: settings.defaultChannels },
    { path: ["digests", "channels"], names: settings.digests.channels ?? [] },
    ...settings.escalation.map(({ channels }, index) => ({
      path: ["escalation", index, "channels"],
      names: channels,
    })),
    ...Object.entries(settings.rules).map(([rule, { channels }]) => ({
      path: ["rules", rule, "channels"],
      names: channels ?? [],
    })),
  ];
}
