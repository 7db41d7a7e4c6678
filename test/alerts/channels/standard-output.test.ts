import { expect, test } from "vitest";
import { standardOutput } from "../../../src/parts/alerts/channels/standard-output.ts";
import { titleOf } from "../../../src/parts/alerts/channels/channel.ts";
import type { SentMessage } from "../../../src/parts/alerts/message.ts";
import { channelDeps } from "./channel-deps.ts";
import { hostileMessage, message } from "../messages.ts";

async function written(format: "json" | "text", sent: SentMessage): Promise<string> {
  const lines: string[] = [];
  const deps = channelDeps({ writeLine: (line) => void lines.push(line) });
  const channel = standardOutput.open({ kind: "stdout", format }, deps);
  await channel.send(sent, { signal: new AbortController().signal });
  return lines.join("");
}

test("as JSON, a line holds the whole message, with a title of one line", async () => {
  for (const each of [message, hostileMessage]) {
    const line = await written("json", each);
    expect(line.indexOf("\n")).toBe(line.length - 1);
    const { title } = (JSON.parse(line) as { alert: SentMessage }).alert;
    expect(JSON.parse(line)).toEqual({ alert: { ...JSON.parse(JSON.stringify(each)), title } });
    expect(title).toBe(titleOf(each));
    expect(title).toMatch(/^[^\p{Cc}]{1,250}$/u);
  }
});

test("as text, a line is one line whatever it tells of", async () => {
  expect(await written("text", message)).toMatch(
    /^2026-11-21T10:00:00\.000Z \[ERROR\] Renewal declined: 29\.00 EUR \| Customer: j•••@example\.com \| .* \| #[0-9a-f]{8}\n$/,
  );
  const line = await written("text", hostileMessage);
  expect(line).not.toMatch(/[\r\0\u001b\u202e]|\n./);
});
