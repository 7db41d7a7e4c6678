import { afterAll, beforeAll, expect, test } from "vitest";
import { alertHtml } from "../../../src/parts/alerts/channels/email.ts";
import { type ChannelSettings, tryOpen } from "../../../src/parts/alerts/channels/channel-kinds.ts";
import type { SentMessage } from "../../../src/parts/alerts/message.ts";
import { type MailServer, startMailServer } from "../../support/mail-server.ts";
import { message } from "../messages.ts";
import { channelDeps } from "./channel-deps.ts";
import { type ChannelServer, startChannelServer } from "./channel-server.ts";

/** What formats, links, names people or makes a picture in some chat, mail program or terminal. */
const markups = [
  "*bold*",
  "**bold**",
  "_slanted_",
  "~struck~",
  "`code`",
  "```block```",
  "> quoted",
  "# heading",
  "<https://evil.example|click>",
  "[click](https://evil.example)",
  "![seen](https://evil.example/pixel)",
  "<!channel>",
  "<@U123>",
  "<#C123>",
  "@channel",
  ":white_check_mark:",
  "<b>bold</b>",
  "&lt;b&gt;",
  "a | Runbook: https://evil.example",
  "=?utf-8?Q?=0ABcc:_thief=40evil.example?=",
  "\u001b[31mred",
  "line\r\nX-Line: added",
];

let http: ChannelServer;
let smtp: MailServer;
beforeAll(async () => {
  http = await startChannelServer();
  smtp = await startMailServer();
});
afterAll(() => Promise.all([http.close(), smtp.close()]));

/** The message with this text wherever outside text can be, storms' lists included. */
const saying = (text: string): SentMessage => ({
  ...message,
  title: text,
  advice: text,
  stage: text,
  facts: [{ label: text, value: text }],
  items: [{ title: text, facts: [{ label: text, value: text }] }],
  links: [{ label: text, url: "https://tallyhook.example.com/alerts/7" }],
});

/** What a channel of this kind sends, as it arrives. */
async function sentBy(settings: ChannelSettings, text: string): Promise<string> {
  const lines: string[] = [];
  const { channel, problem } = tryOpen(
    settings,
    channelDeps({
      privateHosts: ["127.0.0.1"],
      secrets: { URL: http.url, KEY: `whsec_${Buffer.alloc(32, 1).toString("base64")}` },
      smtp: { url: smtp.url, from: "tallyhook@example.com" },
      writeLine: (line) => void lines.push(line),
    }),
  );
  if (channel === undefined) throw new Error(problem);
  try {
    await channel.send(saying(text), { signal: AbortSignal.timeout(60_000) });
  } finally {
    await channel.close();
  }
  if (settings.kind === "stdout") return lines.join("");
  return settings.kind === "email" ? (smtp.mails.at(-1)?.source ?? "") : (http.posts.at(-1)?.body ?? "");
}

/** Every text object of a message to Slack, and the text beside the blocks, which is in Slack's markup as well. */
function slackTexts(body: string): { type: string; text: string }[] {
  const found: { type: string; text: string }[] = [];
  JSON.parse(body, (_key, value: unknown) => {
    if (typeof value === "object" && value !== null && "text" in value) {
      const { text, type = "mrkdwn" } = value as { text: unknown; type?: string };
      if (typeof text === "string") found.push({ type, text });
    }
    return value;
  });
  return found;
}

test.each(markups)("Slack shows %j as it is", async (text) => {
  const texts = slackTexts(await sentBy({ kind: "slack", urlFrom: "URL" }, text));
  expect(texts.filter(({ type }) => type === "plain_text").length).toBeGreaterThan(4);
  for (const { type, text: said } of texts) {
    const withoutOwnLinks = said.replace(/<https:\/\/tallyhook\.example\.com\/[^|>]*\|([^>]*)>/g, "$1");
    expect(withoutOwnLinks).not.toMatch(/[<>]|\]\(|@channel/);
    if (type === "mrkdwn") expect(withoutOwnLinks.replace("dunning_renewal", "")).not.toMatch(/[*_~`]|:[\w+-]+:/);
  }
});

test.each(markups)("a mail shows %j as it is", async (text) => {
  const source = await sentBy({ kind: "email", to: ["one@example.com"] }, text);
  const head = source.split("\r\n\r\n", 1)[0] ?? "";
  expect(head).not.toMatch(/^(Bcc|X-Line):/im);
  const subject = /^Subject: (.*(?:\r\n[ \t].*)*)/m.exec(head)?.[1] ?? "";
  // A program that reads mail would decode it, line break and all.
  expect(subject).not.toContain("=?utf-8?Q?=0A");
  const html = alertHtml(saying(text));
  expect(html).not.toMatch(/<b>bold|<https|<!channel|<@U|<#C|\u001b/);
  expect(html.match(/<a /g)).toHaveLength(1);
});

test.each(markups)("PagerDuty, which reads no markup, gets %j in one line", async (text) => {
  const settings = { kind: "pagerduty", routingKeyFrom: "KEY", url: http.url } as const;
  const body = await sentBy(settings, text);
  const { payload } = JSON.parse(body) as { payload: { summary: string } };
  expect(payload.summary).not.toMatch(/[\r\n\u001b]|@channel/);
  expect(body).not.toContain('"href":"https://evil');
});

test.each(markups)("a webhook hands over %j as data", async (text) => {
  const body = await sentBy({ kind: "webhook", urlFrom: "URL", secretFrom: "KEY" }, text);
  expect(JSON.parse(body)).toMatchObject({
    data: { object: { facts: [{ label: text, value: text }] } },
  });
});

test.each(markups)("a line of standard output says %j as one part of it", async (text) => {
  const plain = await sentBy({ kind: "stdout", format: "text" }, "word");
  const line = await sentBy({ kind: "stdout", format: "text" }, text);
  expect(line).not.toMatch(/[\r\u001b]|\n./);
  expect(line.split(" | ")).toHaveLength(plain.split(" | ").length);
  const json = await sentBy({ kind: "stdout", format: "json" }, text);
  expect(json.trimEnd()).not.toMatch(/[\r\n\u001b]/);
});
