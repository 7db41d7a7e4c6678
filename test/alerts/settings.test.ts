import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { loadAlertSettings } from "../../src/alerts/settings.ts";
import { ConfigurationError } from "../../src/platform/errors.ts";

const example = readFileSync(new URL("../../alerts.example.jsonc", import.meta.url), "utf8");
const load = (text: string) => loadAlertSettings("alerts.jsonc", () => text);

/** The message of the refusal. */
function refusal(text: string): string {
  try {
    load(text);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError);
    return (error as Error).message;
  }
  throw new Error("it was accepted");
}

test("without a file every rule is on and tells the log alone", () => {
  const settings = loadAlertSettings(null);
  expect(settings.channels).toEqual({ log: { kind: "stdout", format: "json" } });
  expect(settings.defaultChannels).toEqual(["log"]);
  expect(Object.values(settings.rules).every(({ enabled }) => enabled)).toBe(true);
  expect(load("{}")).toEqual(settings);
});

test("the example is right, shows every rule, and shows it as it is when it is left out", () => {
  const shown = load(example);
  const defaults = loadAlertSettings(null);
  const text = example.slice(example.indexOf('"rules"'));
  for (const [name, { channels: _, ...rule }] of Object.entries(shown.rules)) {
    expect(text).toContain(`"${name}": {`);
    expect(defaults.rules).toHaveProperty(name, rule);
  }
  expect(shown.digests).toMatchObject(defaults.digests);
  expect(shown.destinations.allowedHosts).toEqual(
    expect.arrayContaining(defaults.destinations.allowedHosts),
  );
});

test("names every wrong setting with its place and line, all at once", () => {
  const message = refusal(`{
    "channels": {
      "team": { "kind": "slack", "url": "https://hooks.slack.com/services/T0/B0/hunter2" },
      "post": { "kind": "email", "to": ["nobody"] },
      "Bad Name": { "kind": "stdout" },
      "page": { "kind": "pager" }
    },
    "destinations": { "allowedHosts": ["https://hooks.slack.com"] },
    "quietHours": { "from": "25:00", "to": "07:00" },
    "rules": {
      "decline": { "severity": "hgih" },
      "dunning_frist": {}
    }
  }`);
  expect(message).toContain("ALERT_SETTINGS_FILE (alerts.jsonc): ");
  expect(message).toContain("settings are wrong:");
  expect(message).toMatch(/line 3, channels\.team\.url: there is no setting "url" here/);
  expect(message).toMatch(/line 3, channels\.team\.urlFrom: /);
  expect(message).toMatch(/line 4, channels\.post\.to\.0: /);
  expect(message).toMatch(/line 5, channels\.Bad Name: /);
  expect(message).toMatch(/line 6, channels\.page\.kind: /);
  expect(message).toMatch(/line 8, destinations\.allowedHosts\.0: should be a host name/);
  expect(message).toMatch(/line 9, quietHours\.from: should be a time such as 08:30/);
  expect(message).toMatch(/line 11, rules\.decline\.severity: .*"critical"/);
  expect(message).toMatch(/line 12, rules\.dunning_frist: .*Did you mean "dunning_first"\?/);
  expect(message).not.toContain("hunter2");
});

test.each([
  [
    '{"defaultChannels": ["logg"]}',
    'defaultChannels.0: there is no channel "logg". Did you mean "log"?',
  ],
  [
    '{"rules": {"chargeback": {"channels": ["log", "on-call"]}}}',
    'rules.chargeback.channels.1: there is no channel "on-call". There are: log.',
  ],
  ['{"digests": {"channels": ["x"]}}', "digests.channels.0"],
  ['{"escalation": [{"afterMinutes": 5, "channels": ["x"]}]}', "escalation.0.channels.0"],
  ['{"timeZone": "Europe/Nowhere"}', "timeZone: should be a time zone of the IANA list"],
  ['{"quietHours": {"from": "22:00", "to": "22:00"}}', "quietHours.to: should differ from"],
  [
    '{"escalation": [{"afterMinutes": 60, "channels": ["log"]}, {"afterMinutes": 60, "channels": ["log"]}]}',
    "escalation.1.afterMinutes: should be more than the 60 of the step before it",
  ],
  [
    '{"links": {"order": "https://a.example/orders"}}',
    "links.order: should be an address with {id}",
  ],
  ['{"links": {"order": "https://{id}.example/"}}', "links.order"],
  ['{"links": {"order": "https://a.example/#{id}"}}', "links.order"],
  ['{"links": {"order": "https://u:{id}@a.example/{id}"}}', "links.order"],
  ['{"links": {"order": "javascript:alert({id})"}}', "links.order"],
  ['{"links": {"oder": "https://a.example/{id}"}}', 'Did you mean "order"?'],
  ['{"channels": {}}', 'there is no channel "log". There are none.'],
  ['{"channels": {"a": {"kind": "slack", "urlFrom": "SVC_API_KEY"}}}', "begins with ALERT_"],
  ['{"channels": {"a": {"kind": "slack", "urlFrom": "ALERT_A_FILE"}}}', "without _FILE"],
  ["[", "cannot be read at line 1"],
])("refuses %s", (text, says) => {
  expect(refusal(text)).toContain(says);
});

test("a file that is not there is named", () => {
  expect(() => loadAlertSettings("/nowhere/alerts.jsonc")).toThrow(
    /ALERT_SETTINGS_FILE \(\/nowhere\/alerts\.jsonc\) cannot be read/,
  );
});
