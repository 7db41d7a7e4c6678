import { readFileSync } from "node:fs";
import { z } from "zod";
import { ConfigurationError } from "../platform/errors.ts";
import { parseJsonWithComments } from "../platform/json-with-comments.ts";
import type { Path } from "../platform/json-with-comments.ts";
import { nearestName } from "../platform/nearest-name.ts";
import { timeZone } from "../platform/setting-kinds.ts";
import { channelSettings, destinationSettings } from "./channel-settings.ts";
import { linkTemplates } from "./link-settings.ts";
import { channelNames, ruleSettings, severity } from "./rule-settings.ts";
import { byName, listOf, oneOf, settingsObject, should, wholeNumber } from "./setting-words.ts";

const timeWords = should("a time from 00:00 to 23:59, such as 08:30");
const timeOfDay = z.string(timeWords).regex(/^([01]\d|2[0-3]):[0-5]\d$/, timeWords);
const weekday = oneOf(["mon", "tue", "wed", "thu", "fri", "sat", "sun"]);
const zoneWords = should(timeZone.should);
const channelName = {
  pattern: /^[a-z][a-z0-9-]{0,39}$/,
  should: "lower-case letters, digits and -, such as on-call",
};
const stepsWords = should(
  'a list of at most 10 steps, such as [{ "afterMinutes": 30, "channels": ["on-call"] }]',
);

const schema = settingsObject({
  channels: byName(channelName, channelSettings, '{ "log": { "kind": "stdout" } }').default({
    log: { kind: "stdout", format: "json" },
  }),
  /** Of every rule that names none. */
  defaultChannels: channelNames.default(["log"]),
  destinations: destinationSettings,
  rules: ruleSettings,
  /** Times of day and days are those of this zone; left out: TALLYHOOK_TIME_ZONE. */
  timeZone: z
    .string(zoneWords)
    .refine((text) => timeZone.schema.safeParse(text).success, zoneWords)
    .optional(),
  /** What is not of one of these severities waits until they end. Null: there are none. */
  quietHours: settingsObject({
    from: timeOfDay,
    to: timeOfDay,
    /** On which days they begin. */
    days: listOf(weekday, '["mon", "tue"]').default([
      "mon",
      "tue",
      "wed",
      "thu",
      "fri",
      "sat",
      "sun",
    ]),
    except: z.array(severity, should('a list such as ["critical"]')).default(["critical"]),
  })
    .nullable()
    .default(null),
  /** What can wait is told together. */
  digests: settingsObject({
    /** Lost renewals, last tries, orders that were not paid, and how many declines only wait for their next try. */
    when: oneOf(["hourly", "daily", "off"]).default("daily"),
    dailyAt: timeOfDay.default("08:00"),
    channels: channelNames.optional(),
  }).prefault({}),
  /** Where people look at what a message is about, with `{id}` for its id. */
  links: linkTemplates,
  /** Steps, each counted from when the alert was first told, for what nobody has acknowledged. */
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
 * The settings of alerts; null stands for no file: every rule is on and tells the log alone. Throws one
 * `ConfigurationError` that names every wrong setting with its place and line.
 */
export function loadAlertSettings(
  file: string | null,
  readFile: (path: string) => string = (path) => readFileSync(path, "utf8"),
): AlertSettings {
  if (file === null) return schema.parse({});
  const place = `ALERT_SETTINGS_FILE (${file})`;
  const text = readText(file, place, readFile);
  if (text.trim() === "") {
    throw new ConfigurationError(`${place} is empty. It should hold an object: { … }.`);
  }
  const parsed = parseJsonWithComments(text);
  if (!parsed.ok) {
    throw new ConfigurationError(
      `${place} cannot be read at line ${parsed.line}: ${parsed.reason}.`,
    );
  }
  const { data, error } = schema.safeParse(parsed.value);
  const problems =
    error === undefined
      ? [...unknownChannels(data), ...contradictions(data)]
      : error.issues.map(problemOf);
  if (data !== undefined && problems.length === 0) return data;
  const said = problems
    .map(({ path, says }) => ({ line: parsed.lineOf(path), path, says }))
    .sort((a, b) => a.line - b.line)
    .map(({ line, path, says }) => `  - line ${line}, ${nameOf(path)}: ${says}`);
  const many = said.length > 1 ? `${said.length} settings are` : "one setting is";
  throw new ConfigurationError(`${place}: ${many} wrong:\n${said.join("\n")}`);
}

function readText(file: string, place: string, readFile: (path: string) => string): string {
  try {
    return readFile(file);
  } catch (cause) {
    throw new ConfigurationError(`${place} cannot be read. Check the path and who may read it.`, {
      cause,
    });
  }
}

interface Problem {
  path: Path;
  says: string;
}

function problemOf(issue: z.core.$ZodIssue): Problem {
  const [key] = issue.code === "unrecognized_keys" ? issue.keys : [];
  return { path: key === undefined ? issue.path : [...issue.path, key], says: issue.message };
}

/** Names of channels that are used and do not exist. */
function unknownChannels(settings: AlertSettings): Problem[] {
  const known = Object.keys(settings.channels);
  return usesOfChannels(settings).flatMap(({ path, names }) =>
    names
      .map((name, index) => ({ name, path: [...path, index] }))
      .filter(({ name }) => !Object.hasOwn(settings.channels, name))
      .map(({ name, path: at }) => ({ path: at, says: unknownChannel(name, known) })),
  );
}

/** What each setting allows and two of them together do not. */
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

/** The message for a name that no channel has: with the one that was meant, or with those that exist. */
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

const nameOf = (path: Path): string =>
  path.length === 0 ? "the file" : path.map(String).join(".");
