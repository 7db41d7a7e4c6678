import { z } from "zod";
import { dunningDefaults } from "../../core/mirror/dunning/stages.ts";
import { type Path, type Problem, readSettingsFile } from "../../platform/settings-file.ts";
import { nearestName } from "../../platform/nearest-name.ts";
import { timeZone } from "../../platform/setting-kinds.ts";
import { channelSettings } from "./channels/channel-kinds.ts";
import { destinationSettings } from "./channels/http-post.ts";
import { watchSettings } from "./rules/watches.ts";
import { channelNames, count, ruleSettings as rule, severity } from "./setting-schemas.ts";
import { byName, expected, listOf, oneOf, settingsObject, wholeNumber } from "../../platform/setting-schemas.ts";
import type { ReadFile } from "../../platform/settings.ts";

const factorWords = expected("a number from 1.1 to 100, such as 3");
const amountWords = expected("a whole number of minor units above 0, such as 50000 for 500.00 EUR");

/** Minor units by currency, such as `{"USD": 50000}`. A currency that is not named has no high amounts. */
const highAmountMinor = byName(
  { pattern: /^[A-Z]{3}$/, should: "a currency in three capital letters, such as EUR" },
  z.int(amountWords).positive(amountWords),
  '{ "EUR": 50000 }, in minor units',
).default({});

/**
 * Every rule with its comment in alerts.example.jsonc, its severity and its thresholds. The conditions of the sweep
 * state their own (rules/watches.ts).
 */
const ruleShape = {
  decline: rule(
    "A one-time order was declined. Amounts from which an alert is urgent: minor units by currency, such as " +
      '{ "EUR": 50000 } for 500.00 EUR.',
    "warning",
    { highAmountMinor },
  ),
  dunning_first: rule("The first charge of a subscription was declined. The service does not retry it.", "error", {
    highAmountMinor,
  }),
  dunning_renewal: rule(
    "A renewal was declined and will be retried. Soft declines are only counted on the daily list, until this attempt: " +
      'then the alert says to write to the customer. From "highAmountMinor" on every attempt is sent immediately.',
    "warning",
    { highAmountMinor, contactAtAttempt: count(1, 20, dunningDefaults.contactAtAttempt) },
  ),
  dunning_last_retry: rule(
    'The last retry of a renewal is near. On the daily list; with severity "critical" it is sent immediately.',
    "error",
    {
      withinHours: count(1, 240, dunningDefaults.withinHours),
      lastAttempt: count(1, 20, dunningDefaults.lastAttempt),
    },
  ),
  dunning_final: rule(
    'A renewal was declined and no retry follows. On the daily list; sent immediately with severity "critical", and from ' +
      'the "highAmountMinor" of "dunning_renewal" on.',
    "error",
    {},
  ),
  chargeback: rule("A customer disputes a payment.", "critical", {}),
  reconcile_drift: rule("A run of reconciliation found differences from the service.", "error", {}),
  reconcile_incomplete: rule("A run of reconciliation did not read everything.", "error", {}),
  identity_broken: rule("An enforced invariant does not hold.", "critical", {}),
  event_dead: rule("An event could not be applied and will not be tried again.", "error", {}),
  event_unknown: rule("A type, version, status, code or currency that was never seen before.", "warning", {}),
  event_duplicate_id: rule("Two different bodies with one event id.", "warning", {}),
  card_number: rule("A field of the service's objects contains card numbers. They are masked here.", "critical", {}),
  alert_undescribed: rule(
    "An alert could not be composed: a new shape of data, or a fault of this version. The data was applied.",
    "error",
    {},
  ),
  endpoint: rule(
    "The webhook endpoint at the service: disabled, its version about to end, a rotation not finished.",
    "critical",
    {},
  ),
  decline_storm: rule(
    'Declines come at "factor" times their usual rate. They become one incident; single alerts are held back and ' +
      "listed when it is over.",
    "critical",
    {
      factor: z.number(factorWords).min(1.1, factorWords).max(100, factorWords).default(3),
      atLeast: count(1, 1_000_000, 20),
      withinMinutes: count(1, 1_440, 10),
      baselineDays: count(1, 60, 14),
    },
  ),
  ...watchSettings,
};

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
const channelName = { pattern: /^[a-z][a-z0-9-]{0,39}$/, should: "lower-case letters, digits and -, such as on-call" };
const stepsWords = expected('a list of at most 10 steps, such as [{ "afterMinutes": 30, "channels": ["on-call"] }]');

const schema = settingsObject({
  channels: byName(channelName, channelSettings, '{ "log": { "kind": "stdout" } }').default({
    log: { kind: "stdout", format: "json" },
  }),
  /** The channels of every rule that names none. */
  defaultChannels: channelNames.default(["log"]),
  destinations: destinationSettings,
  rules: settingsObject(ruleShape).prefault({}),
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

/** A rule's comment in alerts.example.jsonc. */
export const ruleComment = (rule: RuleName): string => ruleShape[rule].description ?? "";

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
    ...settings.escalation.map(({ channels }, index) => ({ path: ["escalation", index, "channels"], names: channels })),
    ...Object.entries(settings.rules).map(([rule, { channels }]) => ({
      path: ["rules", rule, "channels"],
      names: channels ?? [],
    })),
  ];
}
