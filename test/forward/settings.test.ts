import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { openDestinations } from "../../src/parts/delivery/forward/destination.ts";
import { guardFor, loadForwardSettings } from "../../src/parts/delivery/forward/settings.ts";
import { wallClock } from "../../src/platform/clock.ts";
import { ConfigurationError } from "../../src/platform/errors.ts";
import { secret } from "./forward-stand.ts";

const example = readFileSync(new URL("../../forward.example.jsonc", import.meta.url), "utf8");
const load = (text: string) => loadForwardSettings("forward.jsonc", () => text);

function refusal(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError);
    return (error as Error).message;
  }
  throw new Error("it was accepted");
}

const crm = { send: "changes", url: "https://crm.example.com/in", secretFrom: "FORWARD_CRM" };
const withCrm = (given: object, more: object = {}) =>
  JSON.stringify({ destinations: { crm: { ...crm, ...given } }, ...more });

test("the example is right, and shows each setting as it is when it is left out", () => {
  const shown = load(example);
  expect(shown.privateHosts).toEqual([]);
  const { url: _u, secretFrom: _s, ...defaults } = shown.destinations["crm"] ?? {};
  expect(shown.destinations["warehouse"]).toMatchObject({ send: "webhooks", from: "now" });
  expect(load(withCrm({ kinds: ["order.paid", "order.refunded"] })).destinations["crm"]).toEqual({
    ...crm,
    ...defaults,
  });
});

test.each([
  [{ urll: "x" }, 'line 1, destinations.crm.urll: there is no setting "urll" here. Did you mean "url"?'],
  [{ kinds: ["order.refund"] }, 'Did you mean "order.refunded"?'],
  [{ kinds: [] }, "destinations.crm.kinds: an empty list should be a list with at least one element"],
  [
    { send: "change" },
    'destinations.crm.send: "change" should be one of "changes", "webhooks". Did you mean "changes"?',
  ],
  [
    { send: "webhooks", types: ["order.suceeded"] },
    '"order.suceeded" is no type of an event. Did you mean "order.succeeded"?',
  ],
  [{ send: "webhooks", kinds: ["order.paid"] }, 'destinations.crm.kinds: there is no setting "kinds" here'],
  [{ secretFrom: undefined }, "destinations.crm.secretFrom: is missing: should be the name of an environment variable"],
  [{ secretFrom: secret }, "that begins with FORWARD_; the secret itself does not stand in this file"],
  [{ secretFrom: "FORWARD_CRM_FILE" }, "without _FILE"],
  [{ secretFrom: "FORWARD_SETTINGS" }, "without _FILE"],
  [{ url: "crm.example.com" }, "destinations.crm.url: should be an address such as https://"],
  [{ url: "https://hunter2:hunter2@crm.example.com/" }, "without user name and password"],
  [{ url: "http://crm.example.com/in" }, "crm.example.com must be reached by https (http is for privateHosts alone)"],
  [{ url: "https://10.0.0.5/in" }, "10.0.0.5 is at a private address: add it to privateHosts if that is meant"],
  [{ url: "https://169.254.169.254/" }, "is at an address to which nothing may be sent"],
  [{ from: "yesterday" }, 'destinations.crm.from: "yesterday" should be "now", "beginning" or a time with its offset'],
  [{ concurrency: 0 }, "destinations.crm.concurrency: 0 should be a whole number from 1 to 50"],
  [{ timeoutSeconds: 31 }, "destinations.crm.timeoutSeconds: 31 should be a whole number from 1 to 30"],
])("refuses %j, and says where and what to do", (given, says) => {
  const message = refusal(() => load(withCrm(given)));
  expect(message).toContain("FORWARD_SETTINGS_FILE (forward.jsonc): ");
  expect(message).toContain(says);
  expect(message).not.toContain("hunter2");
  expect(message).not.toContain(secret);
});

test.each([
  [`{"destinations": {"crm": ${JSON.stringify(crm)}, "crm": ${JSON.stringify(crm)}}}`, 'the key "crm" is repeated'],
  [`{"destinations": {"Crm": ${JSON.stringify(crm)}}}`, "is a wrong name: should be at most 40 lower-case letters"],
  ['{"destination": {}}', 'Did you mean "destinations"?'],
  ['{"destinations": {"crm": "https://hunter2"}}', "destinations.crm: should be an object such as"],
  ["", "is empty"],
])("refuses the file %s", (text, says) => {
  const message = refusal(() => load(text));
  expect(message).toContain(says);
  expect(message).not.toContain("hunter2");
});

test("all destinations whose secrets are not usable are named at once, without the secrets", () => {
  const other = { ...crm, secretFrom: "FORWARD_OTHER" };
  const third = { ...crm, secretFrom: "FORWARD_THIRD" };
  const settings = load(JSON.stringify({ destinations: { crm, other, third } }));
  const secrets: Record<string, string> = {
    FORWARD_CRM: `${secret},whsec_hunter2!`,
    FORWARD_THIRD: secret,
  };
  const open = () =>
    openDestinations(settings.destinations, {
      guard: guardFor(settings),
      clock: wallClock,
      secretOf: (variable) => secrets[variable] ?? null,
    });
  expect(refusal(open)).toBe(
    "Nothing can be forwarded as set up:\n" +
      '  - destination "crm": FORWARD_CRM is not base64 after whsec_, as the standard-webhooks scheme needs ' +
      "(commas separate secrets; if one secret was split, leave out the comma and what is before it, such as v1).\n" +
      '  - destination "other": set FORWARD_OTHER or FORWARD_OTHER_FILE, such as to the output of: ' +
      'echo "whsec_$(openssl rand -base64 32)".',
  );
});

test("a type of event that the interface does not name is taken, since it does not name all", () => {
  expect(() => load(withCrm({ send: "webhooks", types: ["dispute.opened"] }))).not.toThrow();
});

test("a private host that is allowed may be reached by http, also as an address", () => {
  for (const host of ["crm.internal", "10.0.0.5", "[::1]"]) {
    const privateHosts = [host.replace(/^\[|\]$/g, "")];
    expect(() => load(withCrm({ url: `http://${host}:8080/in` }, { privateHosts }))).not.toThrow();
  }
});
