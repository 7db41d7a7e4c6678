import { expect, test } from "vitest";
import { z } from "zod";
import { slackPayload } from "../../../src/parts/alerts/channels/slack.ts";
import { hostileMessage, message } from "../messages.ts";

/** Block Kit, as documented: what is longer is refused as a whole. */
const text = (max: number) => {
  const said = z.string().min(1).max(max);
  return z.union([
    z.strictObject({ type: z.literal("plain_text"), text: said, emoji: z.literal(false) }),
    z.strictObject({ type: z.literal("mrkdwn"), text: said, verbatim: z.literal(true) }),
  ]);
};
const payload = z.strictObject({
  text: z.string().min(1).max(3_000),
  blocks: z
    .array(
      z.union([
        z.strictObject({ type: z.literal("section"), text: text(3_000) }),
        z.strictObject({ type: z.literal("section"), fields: z.array(text(2_000)).min(1).max(10) }),
        z.strictObject({
          type: z.literal("context"),
          elements: z.array(text(3_000)).min(1).max(10),
        }),
      ]),
    )
    .min(1)
    .max(50),
});

test("a message is a headline, its facts, what to do, links and a mark", () => {
  const { text: fallback, blocks } = payload.parse(slackPayload(message));
  expect(fallback).toMatch(/^🔴 \[ERROR\] Renewal declined: 29\.00 EUR #[0-9a-f]{8}$/);
  const said = JSON.stringify(blocks);
  expect(said).toContain("Card\\n•••• 4242");
  expect(said).toContain("What to do: Ask for a new card now.");
  expect(said).toContain("<https://tallyhook.example.com/alerts/7?a=1&amp;b=2|Dashboard>");
  expect(said).toMatch(/alert · dunning_renewal · attempt-2 · 2026-11-21T10:00:00\.000Z · #[0-9a-f]{8}/);
});

test("a repeat bears the same mark, another stage another, and an end says so", () => {
  const markOf = (payloadText: string) => /#[0-9a-f]{8}/.exec(payloadText)?.[0];
  const other = { ...message, idempotencyKey: "dunning:sub_1:7#1/resolved/team" };
  const ended = JSON.stringify(slackPayload({ ...other, action: "resolve" }));
  expect(JSON.stringify(slackPayload(message))).toBe(JSON.stringify(slackPayload(message)));
  expect(markOf(ended)).not.toBe(markOf(JSON.stringify(slackPayload(message))));
  expect(ended).toContain("✅ [RESOLVED] Renewal declined");
});

test("hostile words stay words, and within the limits of blocks", () => {
  const { text: fallback, blocks } = payload.parse(slackPayload(hostileMessage));
  const texts = [fallback, ...JSON.stringify(blocks).split('"text":')];
  for (const each of texts) {
    expect(each).not.toMatch(/<[!@#]|<script|@channel|@everyone|[\u202a-\u202e\u2066-\u2069]/i);
    expect(each.isWellFormed()).toBe(true);
  }
  expect(fallback).not.toMatch(/[\r\n\0]/);
  expect(fallback).toContain("&lt;!channel&gt; &lt;script&gt;");
  const links = JSON.stringify(blocks).match(/<[^>]*>/g);
  expect(links).toHaveLength(1);
  expect(links?.[0]).toMatch(/^<https:\/\/example\.com\/%3C!channel%3E%7Cx\|&lt;!channel&gt;/);
  expect(JSON.stringify(blocks)).toMatch(/… and 2\d\d more\./);
});

test("no link is made where Markdown is read", () => {
  const payloadText = JSON.stringify(slackPayload({ ...message, title: "[free](https://evil.example)" }));
  expect(payloadText).not.toContain("](");
  expect(payloadText).toContain("[free] (https://evil.example)");
});
