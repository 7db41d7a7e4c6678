import { describe, expect, test } from "vitest";
import { tryOpen } from "../../../src/parts/alerts/channels/channel-kinds.ts";
import { alertHtml, alertText } from "../../../src/parts/alerts/channels/email.ts";
import { pagerDutyEvent } from "../../../src/parts/alerts/channels/pagerduty.ts";
import { slackPayload } from "../../../src/parts/alerts/channels/slack.ts";
import type { SentMessage } from "../../../src/parts/alerts/message.ts";
import { message } from "../messages.ts";
import { channelDeps } from "./channel-deps.ts";

const url = "https://git.example.com/shop/docs/runbooks.md#dunning_renewal";
const path = "docs/runbooks.md#dunning_renewal";

const shown: Readonly<Record<string, (message: SentMessage) => string>> = {
  slack: (each) => JSON.stringify(slackPayload(each)),
  "mail as text": alertText,
  "mail as HTML": alertHtml,
  pagerduty: (each) => JSON.stringify(pagerDutyEvent(each)),
};

describe.each(Object.entries(shown))("%s", (_name, show) => {
  test("links to the section of the rule where the runbooks have an address", () => {
    expect(show({ ...message, runbook: url })).toMatch(
      new RegExp(`(<|href="|href":"|Runbook: )${url.replaceAll(".", "\\.")}`),
    );
  });

  test("names the path of the section where they have none", () => {
    expect(show(message)).toMatch(/Runbook(: |":")docs\/runbooks\.md#dunning_renewal/);
    expect(show(message)).not.toMatch(/(<|href=")docs\/runbooks/);
  });
});

test.each([
  [null, path],
  ["https://git.example.com/shop/docs/runbooks.md", url],
])("an opened channel says where the section is, with the address %s", async (runbooksUrl, is) => {
  const lines: string[] = [];
  const deps = channelDeps({ runbooksUrl, writeLine: (line) => void lines.push(line) });
  const { channel } = tryOpen({ kind: "stdout", format: "json" }, deps);
  const { runbook: _unknown, ...queued } = message;
  await channel?.send(queued, { signal: new AbortController().signal });
  expect(JSON.parse(lines.join(""))).toHaveProperty("alert.runbook", is);
});
