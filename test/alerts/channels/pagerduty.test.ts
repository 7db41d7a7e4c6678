import { expect, test } from "vitest";
import { pagerDutyEvent } from "../../../src/parts/alerts/channels/pagerduty.ts";
import { hostileMessage, message } from "../messages.ts";

test("a message is a trigger as Events API v2 documents it", () => {
  expect(pagerDutyEvent(message)).toEqual({
    event_action: "trigger",
    dedup_key: "dunning:sub_1:7#1",
    client: "Tallyhook",
    payload: {
      summary: "Renewal declined: 29.00 EUR",
      source: "tallyhook",
      severity: "error",
      timestamp: "2026-11-21T10:00:00.000Z",
      class: "dunning_renewal",
      custom_details: {
        Customer: "j•••@example.com",
        Card: "•••• 4242",
        "What to do": "Ask for a new card now.",
        Runbook: "docs/runbooks.md#dunning_renewal",
        Stage: "attempt-2",
      },
    },
    links: [{ href: "https://tallyhook.example.com/alerts/7?a=1&b=2", text: "Dashboard" }],
  });
});

test.each(["acknowledge", "resolve"] as const)("%s names the incident and nothing else", (action) => {
  expect(pagerDutyEvent({ ...message, action })).toEqual({
    event_action: action,
    dedup_key: "dunning:sub_1:7#1",
  });
});

test("hostile words stay within the documented lengths", () => {
  const event = pagerDutyEvent(hostileMessage) as {
    dedup_key: string;
    payload: { summary: string };
    links: { href: string }[];
  };
  expect(event.dedup_key).toMatch(/^sha256:[0-9a-f]{64}$/);
  expect(event.payload.summary.length).toBeLessThanOrEqual(1_024);
  expect(event.payload.summary).not.toMatch(/[\r\n\0]/);
  expect(event.links.map(({ href }) => href)).toEqual(["https://example.com/%3C!channel%3E|x"]);
  expect(Buffer.byteLength(JSON.stringify(event))).toBeLessThan(512 * 1024);
});
