import { describe, expect, test } from "vitest";
import { alertText } from "../../src/parts/alerts/channels/email.ts";
import { type AlertMessage, runbookOf } from "../../src/parts/alerts/message.ts";
import { sampleMessages } from "../../src/parts/alerts/sample-messages.ts";
import { loadAlertSettings } from "../../src/parts/alerts/settings.ts";
import { settingsOf, testAlertContext } from "./test-alert-context.ts";

const links = Object.fromEntries(
  ["order", "subscription", "customer", "transaction"].map((kind) => [kind, `https://admin.example.com/${kind}s/{id}`]),
);
const alertContext = testAlertContext({
  settings: settingsOf({ links }),
  timeZone: "Europe/Berlin",
});
const samples = sampleMessages(alertContext, {
  channel: "log",
  run: "run",
  at: new Date("2026-10-23T12:25:00.000Z"),
  all: true,
  endsAll: false,
}).map(({ what, message }): [string, AlertMessage] => [what, withoutMark(message)]);

function withoutMark(message: AlertMessage): AlertMessage {
  return {
    ...message,
    title: message.title.replace(/^TEST /, ""),
    advice: message.advice.replace(/^This is a test: nothing happened\. /, ""),
  };
}

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/i;
/** `49.00 EUR`, `LOST 49.00 EUR`, `Chargeback won 120.00 EUR`: money stands in the first words. */
const moneyFirst = /^(LOST |Chargeback (LOST |won |again )?)?\d+\.\d{2} [A-Z]{3}\b/;
const countFirst = /^\d+ /;

test("every rule is among the messages", () => {
  const told = new Set(samples.map(([, { rule }]) => rule));
  const rules = Object.keys(loadAlertSettings(null).rules);
  expect(rules.filter((rule) => !told.has(rule))).toEqual([]);
});

describe.each(samples)("%s", (_what, message) => {
  const { action, title, advice, facts, links: pages, items = [] } = message;

  test("has a title of one short line without ids, in which money or a count comes first", () => {
    for (const line of [title, ...items.map((item) => item.title)]) {
      expect(line.length).toBeLessThanOrEqual(110);
      expect(line).not.toMatch(/[\r\n]/);
      expect(line).not.toMatch(uuid);
      expect(line).not.toContain("sample-");
      const knowsMoney = facts.some(({ label }) => label === "Amount");
      const knowsCount = facts.some(({ label }) => /^In \d+ min|^Left$/.test(label));
      if (knowsMoney) expect(line).toMatch(moneyFirst);
      if (knowsCount) expect(line).toMatch(countFirst);
    }
  });

  test("has advice that no channel cuts off", () => {
    // Slack and the text form of standard output show the least.
    expect(advice.length).toBeLessThanOrEqual(500);
  });

  test("says what to do, and names a page or a command for it", () => {
    expect(advice).toMatch(/^["A-Z1-9].{20,}\.$/s);
    const said = [advice, ...facts.map(({ value }) => value)].join(" ");
    if (action === "trigger") expect(said).toMatch(/node src\/bin\/tallyhook\.js [a-z]+/);
    else if (pages.length === 0) expect(said).toMatch(/node src\/bin\/tallyhook\.js [a-z]+|Nothing is left to do/);
  });
});

test("of each rule one message as a mail shows it, and of the others what they say and advise", async () => {
  const rules = new Set<string>();
  const ours = samples.filter(([, { rule }]) => !rule.startsWith("own_"));
  const blocks = ours.map(([what, message]) => {
    const mail = alertText({ ...message, idempotencyKey: what, runbook: runbookOf(message.rule, null) }).trimEnd();
    const isFirst = !rules.has(message.rule);
    rules.add(message.rule);
    return `== ${what}\n${isFirst ? `${mail}\n` : `${mail.split("\n", 1)[0]}\n${message.advice}`}\n`;
  });
  await expect([...new Set(blocks)].join("")).toMatchFileSnapshot("./every-message.txt");
});
