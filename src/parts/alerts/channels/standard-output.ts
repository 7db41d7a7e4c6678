import { z } from "zod";
import type { AlertItem, SentMessage } from "../message.ts";
import { oneOf, settingsObject } from "../../../platform/setting-schemas.ts";
import { oneLine } from "../../../platform/readable-text.ts";
import { type Channel, headlineOf, maxItems, shortMark, titleOf } from "./channel.ts";
import { asJson, channelKind } from "./channel-kind.ts";

/** The worker's standard output, one line per message: JSON as in its log, or text for people. */
export const standardOutput = channelKind({
  settings: settingsObject({
    kind: z.literal("stdout"),
    format: oneOf(["json", "text"]).default("json"),
  }),
  // Container logs cut a line at 16 KiB.
  list: { size: 15_000, sizeOf: asJson },
  open: ({ format }, { writeLine }) => createStandardOutputChannel(writeLine, format),
});

function createStandardOutputChannel(write: (line: string) => void, format: "json" | "text"): Channel<SentMessage> {
  return {
    kind: "stdout",
    host: null,
    async send(message) {
      write(
        `${format === "json" ? JSON.stringify({ alert: { ...message, title: titleOf(message) } }) : textLine(message)}\n`,
      );
      return "written";
    },
    close: async () => {},
  };
}

function textLine(message: SentMessage): string {
  const { facts, items = [], advice, links, runbook, at } = message;
  const parts = [
    `${oneLine(at, 40)} ${headlineOf(message)}`,
    ...facts.map(({ label, value }) => `${oneLine(label, 60)}: ${oneLine(value, 200)}`),
    ...items.slice(0, maxItems).map(itemText),
    ...(items.length > maxItems ? [`… and ${items.length - maxItems} more`] : []),
    ...(advice === "" ? [] : [oneLine(advice, 500)]),
    ...links.map(({ url }) => oneLine(url, 300)),
    `Runbook: ${oneLine(runbook, 300)}`,
    shortMark(message),
  ];
  // A bar of outside text must not look like the next part.
  return parts.map((part) => part.replaceAll("|", "¦")).join(" | ");
}

const itemText = ({ title, facts }: AlertItem): string =>
  [oneLine(title, 120), ...facts.slice(0, 5).map(({ value }) => oneLine(value, 100))].join(", ");
