import { z } from "zod";
import type { AlertFact, AlertItem, SentMessage } from "../message.ts";
import { oneLine } from "../../../platform/readable-text.ts";
import { type Channel, headerKey, headlineOf, safeLink, shortMark, wordsOfAction } from "./channel.ts";
import { settingsObject } from "../../../platform/setting-schemas.ts";
import { fromVariable } from "../setting-schemas.ts";
import { channelKind, httpTo, secret } from "./channel-kind.ts";
import type { HttpPost } from "./http-post.ts";

/**
 * An incoming webhook of Slack or of a compatible chat. It accepts a repeated message again, so the mark at the end of
 * the text identifies a repeat.
 *
 * Source: Slack, "Sending messages using incoming webhooks", "Formatting text for app surfaces", Block Kit limits.
 */
export const slack = channelKind({
  settings: settingsObject({ kind: z.literal("slack"), urlFrom: fromVariable }),
  // Two neighbouring sections hold more than 2,900 characters. This size makes 18 of the 50 blocks of a message.
  list: { size: 25_000, sizeOf: (item) => itemText(item).length },
  open: ({ urlFrom }, deps) => createSlackChannel(httpTo(secret(urlFrom, deps), urlFrom, deps)),
});

function createSlackChannel(http: HttpPost): Channel<SentMessage> {
  return {
    kind: "slack",
    host: http.host,
    send: (message, { signal }) =>
      http.post(JSON.stringify(slackPayload(message)), { "idempotency-key": headerKey(message) }, signal),
    close: () => http.close(),
  };
}

const emojis = {
  critical: "🚨",
  error: "🔴",
  warning: "🟡",
  info: "ℹ️",
};
const resolvedEmoji = "✅";

// All lengths below keep within the limits of blocks even if every character becomes an entity of five.
const maxFacts = 40;
const factsPerBlock = 10;
/** A message has at most 50 blocks. */
const maxItemSections = 20;
const maxSectionText = 2_900;
const maxLinks = 4;
const maxLinkCharacters = 400;

/**
 * The message in blocks, with a text for notifications and for chats without blocks. Blocks hold all words as plain
 * text, without formatting; only links, and that text, are in Slack's markup, which has no escape for a star.
 */
export function slackPayload(message: SentMessage): object {
  const emoji = message.action === "resolve" ? resolvedEmoji : emojis[message.severity];
  const { sections, left } = itemSections(message.items ?? []);
  const links = message.links.flatMap(linkText);
  const blocks = [
    section(plain(`${emoji} ${escaped(headlineOf(message), 250)}`)),
    ...inGroups(message.facts.slice(0, maxFacts), factsPerBlock).map((facts) => ({
      type: "section",
      fields: facts.map((fact) => plain(factText(fact))),
    })),
    ...sections.map((text) => section(plain(text))),
    ...(left === 0 ? [] : [section(plain(`… and ${left} more.`))]),
    ...(message.advice === "" ? [] : [section(plain(`What to do: ${escaped(message.advice, 580)}`))]),
    ...(links.length === 0 ? [] : [section(markup(links.slice(0, maxLinks).join("  ·  ")))]),
    { type: "context", elements: [runbookElement(message), plain(contextText(message))] },
  ];
  return { text: `${emoji} ${lookalike(headlineOf(message), 250)} ${shortMark(message)}`, blocks };
}

/** A link where the runbooks have an address, else their path. */
function runbookElement({ runbook, rule }: SentMessage): object {
  const [link] = linkText({ label: `Runbook: ${rule}`, url: runbook });
  return link === undefined ? plain(`Runbook: ${escaped(runbook, maxLinkCharacters)}`) : markup(link);
}

const contextText = (message: SentMessage): string =>
  [
    wordsOfAction[message.action],
    escaped(message.rule, 60),
    escaped(message.stage, 60),
    escaped(message.at, 40),
    shortMark(message),
  ].join(" · ");

const factText = ({ label, value }: AlertFact): string => `${escaped(label, 80)}\n${escaped(value, 300)}`;

/** An item as text, in one or two lines. */
function itemText({ title, facts }: AlertItem): string {
  const told = facts.slice(0, 5).map(({ label, value }) => `${escaped(label, 30)}: ${escaped(value, 60)}`);
  return [`• ${escaped(title, 120)}`, ...(told.length === 0 ? [] : [told.join(", ")])].join("\n");
}

/** Puts as many items into the blocks of a message as fit, several to a block, and returns how many are left. */
function itemSections(items: readonly AlertItem[]): { sections: string[]; left: number } {
  const sections: string[] = [];
  for (const [n, item] of items.entries()) {
    const told = itemText(item);
    const last = sections.at(-1);
    if (last !== undefined && last.length + told.length < maxSectionText) {
      sections[sections.length - 1] = `${last}\n${told}`;
    } else if (sections.length < maxItemSections) sections.push(told);
    else return { sections, left: items.length - n };
  }
  return { sections, left: 0 };
}

function linkText({ label, url }: { label: string; url: string }): string[] {
  const link = safeLink(url);
  // A bar would end the address and start the label too early.
  if (link === null || link.length > maxLinkCharacters) return [];
  return [`<${entities(link).replace(/\|/g, "%7C")}|${lookalike(label, 40)}>`];
}

/** `emoji`: Slack makes no picture of `:name:`. */
const plain = (text: string) => ({ type: "plain_text", text, emoji: false });
/** `verbatim`: Slack does not turn text that looks like a link or a mention into one. */
const markup = (text: string) => ({ type: "mrkdwn", text, verbatim: true });
const section = (text: object) => ({ type: "section", text });

/** The three characters that Slack decodes in every text, plain or not. */
const entities = (text: string): string => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
/** Compatible chats also read Markdown, in which `](` would turn the text before it into a link. */
const escaped = (text: string, max: number): string => entities(oneLine(text, max)).replaceAll("](", "] (") || "–";

const lookalikes: Readonly<Record<string, string>> = {
  "*": "∗",
  _: "ˍ",
  "~": "∼",
  "`": "ˋ",
  ":": "∶",
};
/** For markup: characters that would format words, or make a picture of `:name:`, become similar ones. */
const lookalike = (text: string, max: number): string =>
  escaped(text, max).replace(/[*_~`]|:(?=[\w+-]+:)/g, (found) => lookalikes[found] ?? found);

function inGroups<T>(all: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, group) =>
    all.slice(group * size, (group + 1) * size),
  );
}
