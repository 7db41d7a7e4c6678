import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { loadAlertSettings, ruleComment, ruleNames } from "../../src/parts/alerts/settings.ts";
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

/** Your own rules are in no file of ours. */
const ourRules = ruleNames.filter((rule) => !rule.startsWith("own_"));

test("the example is right, and shows what it leaves out as it is", () => {
  const shown = load(example);
  const defaults = loadAlertSettings(null);
  for (const rule of ourRules) {
    const { channels: _, ...settings } = shown.rules[rule];
    expect(defaults.rules[rule]).toMatchObject(settings);
  }
  expect(shown.digests).toMatchObject(defaults.digests);
  expect(shown.destinations.allowedHosts).toEqual(expect.arrayContaining(defaults.destinations.allowedHosts));
});

test("the example has each rule under the comment that the rule gives", () => {
  const text = example.slice(example.indexOf('"rules"'));
  const shown = text.matchAll(/((?: {4}\/\/ .*\n)+) {4}"([a-z_]+)": \{/g);
  const comments = [...shown].map(([, comment = "", rule]) => [rule, comment.replaceAll(/\s+\/\/ /g, " ").trim()]);
  expect(Object.fromEntries(comments)).toEqual(Object.fromEntries(ourRules.map((rule) => [rule, ruleComment(rule)])));
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
  expect(message).toMatch(/line 8, destinations\.allowedHosts\.0: .* should be a host name/);
  expect(message).toMatch(/line 9, quietHours\.from: "25:00" should be a time/);
  expect(message).toMatch(/line 11, rules\.decline\.severity: .*"critical"/);
  expect(message).toMatch(/line 12, rules\.dunning_frist: .*Did you mean "dunning_first"\?/);
  expect(message).not.toContain("hunter2");
});

test.each([
  ['{"defaultChannels": ["logg"]}', 'defaultChannels.0: there is no channel "logg". Did you mean "log"?'],
  [
    '{"rules": {"chargeback": {"channels": ["log", "on-call"]}}}',
    'rules.chargeback.channels.1: there is no channel "on-call". There are: log.',
  ],
  ['{"digests": {"channels": ["x"]}}', "digests.channels.0"],
  ['{"escalation": [{"afterMinutes": 5, "channels": ["x"]}]}', "escalation.0.channels.0"],
  ['{"quietHours": {"from": "22:00", "to": "22:00"}}', "quietHours.to: should differ from"],
  [
    '{"escalation": [{"afterMinutes": 60, "channels": ["log"]}, {"afterMinutes": 60, "channels": ["log"]}]}',
    "escalation.1.afterMinutes: should be more than the 60 of the step before it",
  ],
  [
    '{"links": {"order": "https://a.example/orders"}}',
    'links.order: "https://a.example/orders" should be an address with {id}',
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
  ["", "alerts.jsonc) is empty. It should hold an object"],
  ['{"channels": {"team": "https://hooks.slack.com/hunter2"}}', "team: should be an object such as"],
])("refuses %s", (text, says) => {
  expect(refusal(text)).toContain(says);
  expect(refusal(text)).not.toContain("hunter2");
});

/** What may be written wrong, setting by setting; test/alerts/setting-mistakes.txt has what is said of each. */
const mistakes = [
  '"rules":{"decline":{"enabled":"yes"}}',
  '"rules":[]',
  '"channels":null',
  '"channels":{"team":"slack"}',
  '"channels":{"team":{"urlFrom":"ALERT_X"}}',
  '"channels":{"team":{"kind":"slak"}}',
  '"channels":{"team":{"kind":1}}',
  '"channels":{"team":{"kind":"slack"}}',
  '"channels":{"team":{"kind":"slack","urlFrom":"https://hooks.slack.com/x"}}',
  '"channels":{"team":{"kind":"slack","urlFrom":"ALERT_X","urlForm":"ALERT_X"}}',
  '"channels":{"m":{"kind":"email","to":["nobody"]}}',
  '"channels":{"m":{"kind":"email","to":"a@b.example"}}',
  '"channels":{"m":{"kind":"email","to":[]}}',
  '"channels":{"p":{"kind":"pagerduty","routingKeyFrom":"ALERT_K","url":"events.pagerduty.com"}}',
  '"channels":{"Team A":{"kind":"stdout"}}',
  '"channels":{"log":{"kind":"stdout","format":"xml"}}',
  '"defaultChannels":"log"',
  '"defaultChannels":[]',
  '"rules":{"decline":{"severity":"hgih"}}',
  '"rules":{"decline":{"severity":"Critical"}}',
  '"rules":{"decline":{"highAmountMinor":{"EUR":-1}}}',
  '"rules":{"decline":{"highAmountMinor":{"EUR":500.5}}}',
  '"rules":{"decline":{"highAmountMinor":{"EUR":"500"}}}',
  '"rules":{"decline":{"highAmountMinor":{"eur":500}}}',
  '"rules":{"decline":{"highAmountMinor":500}}',
  '"rules":{"dunning_renewal":{"contactAtAttempt":0}}',
  '"rules":{"dunning_renewal":{"contactAtAttempt":99}}',
  '"rules":{"dunning_renewal":{"contactAtAttempt":1.5}}',
  '"rules":{"dunning_renewal":{"contactAtAttempt":"3"}}',
  '"rules":{"chargeback_ratio":{"share":80}}',
  '"rules":{"chargeback_ratio":{"share":0}}',
  '"rules":{"decline_storm":{"factor":1}}',
  '"rules":{"dunning_frist":{}}',
  '"rules":{"decline":{"sevrity":"error"}}',
  '"rules":{"decline":null}',
  '"timeZone":"Europe/Nowhere"',
  '"timeZone":1',
  '"quietHours":{"from":"25:00","to":"07:00"}',
  '"quietHours":{"from":"22:00"}',
  '"quietHours":{"from":"22:00","to":"07:00","days":["monday"]}',
  '"quietHours":true',
  '"quietHours":{"from":"22:00","to":"07:00","days":[]}',
  '"digests":{"when":"weekly"}',
  '"digests":{"dailyAt":"8"}',
  '"escalation":[{"channels":["log"]}]',
  '"escalation":{"afterMinutes":5,"channels":["log"]}',
  '"escalation":[{"afterMinutes":100000,"channels":["log"]}]',
  '"escalation":[{"afterMinutes":5,"channels":["log"],"severities":["crit"]}]',
  '"links":{"order":"https://a.example/orders"}',
  '"links":{"order":5}',
  '"destinations":{"allowedHosts":["https://hooks.slack.com"]}',
  '"destinations":{"privateHosts":["mail.internal:25"]}',
  '"chanels":{}',
  '"escalation":[{"afterMinutes":1,"channels":["log"]},{"afterMinutes":2,"channels":["log"]},{"afterMinutes":3,"channels":["log"]},{"afterMinutes":4,"channels":["log"]},{"afterMinutes":5,"channels":["log"]},{"afterMinutes":6,"channels":["log"]},{"afterMinutes":7,"channels":["log"]},{"afterMinutes":8,"channels":["log"]},{"afterMinutes":9,"channels":["log"]},{"afterMinutes":10,"channels":["log"]},{"afterMinutes":11,"channels":["log"]}]',
];

const ofMistake = (text: string): string => refusal(`{\n  // A comment.\n  ${text}\n}`);

test.each(mistakes)("%s is refused in words of ours, with its line", (text) => {
  expect(ofMistake(text)).toMatch(/: one setting is wrong:\n  - line 3, .*$/);
  expect(ofMistake(text)).toMatch(/should be|is missing|there is no setting/);
  expect(ofMistake(text)).not.toMatch(/invalid|expected|too (small|big)|received/i);
});

test("all mistakes and what is said of them", async () => {
  const blocks = mistakes.map((text) => {
    const said = ofMistake(text).replace(/^.*\n  - line 3, /, "");
    return `${text}\n  ${said}\n`;
  });
  await expect(blocks.join("\n")).toMatchFileSnapshot("./setting-mistakes.txt");
});

const noValue = "this word is not a value: keys and texts need double quotes.";

test.each([
  ['{\n "rules": {"decline": {},\n "decline": {}}}', 'line 3, column 2: the key "decline" is repeated.'],
  ['{"rules": {}\n "links": {}}', "line 2, column 2: a comma is expected here."],
  ["{'rules': {}}", `line 1, column 2: ${noValue}`],
  ["{\n\nrules: {}}", `line 3, column 1: ${noValue}`],
  ['{"rules": yes}', `line 1, column 11: ${noValue}`],
  ['{"rules": {', "line 1, column 12: a comma or } is expected here."],
])("a file that is not JSON is refused with its place: %s", (text, says) => {
  expect(refusal(text)).toBe(`ALERT_SETTINGS_FILE (alerts.jsonc) cannot be read at ${says}`);
});

test("a file that is not there is named", () => {
  expect(() => loadAlertSettings("/nowhere/alerts.jsonc")).toThrow(
    /ALERT_SETTINGS_FILE \(\/nowhere\/alerts\.jsonc\) cannot be read/,
  );
});
