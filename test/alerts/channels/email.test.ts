import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { alertHtml, alertText } from "../../../src/parts/alerts/channels/email.ts";
import { tryOpen } from "../../../src/parts/alerts/channels/channel-kinds.ts";
import type { Channel } from "../../../src/parts/alerts/channels/channel.ts";
import { type MailServer, startMailServer } from "../../support/mail-server.ts";
import { freePort } from "../../support/free-port.ts";
import { channelDeps } from "./channel-deps.ts";
import { hostileMessage, message } from "../messages.ts";

let server: MailServer;
const opened: Channel[] = [];

beforeAll(async () => {
  server = await startMailServer();
});
afterEach(async () => {
  server.refuseWith(null);
  await Promise.all(opened.splice(0).map((channel) => channel.close()));
});
afterAll(() => server.close());

function open(url = server.url, privateHosts = ["127.0.0.1"]): Channel {
  const smtp = { url, from: "tallyhook@example.com" };
  const deps = channelDeps({ smtp, privateHosts });
  const { channel, problem } = tryOpen({ kind: "email", to: ["one@example.com", "two@example.com"] }, deps);
  if (channel === undefined) throw new Error(problem);
  opened.push(channel);
  return channel;
}

const send = (channel: Channel, sent = message) => channel.send(sent, { signal: AbortSignal.timeout(60_000) });
const header = (source: string, name: string) =>
  new RegExp(`^${name}: (.*(?:\\r\\n[ \\t].*)*)`, "im").exec(source)?.[1];

test("a repeat bears the same id, and all mails of one alert are one thread", async () => {
  const channel = open();
  await send(channel);
  await send(channel);
  await send(channel, { ...message, action: "resolve", idempotencyKey: "another stage" });
  const [first = "", again = "", ended = ""] = server.mails.slice(-3).map(({ source }) => source);
  expect(header(first, "Message-ID")).toMatch(/^<[0-9a-f]{40}@example\.com>$/);
  expect(header(again, "Message-ID")).toBe(header(first, "Message-ID"));
  expect(header(ended, "Message-ID")).not.toBe(header(first, "Message-ID"));
  for (const name of ["References", "In-Reply-To"]) {
    expect(header(first, name)).toMatch(/^<[0-9a-f]{40}@example\.com>$/);
    expect(header(ended, name)).toBe(header(first, "References"));
  }
  expect(header(first, "Subject")).toBe("[ERROR] Renewal declined: 29.00 EUR");
  expect(header(ended, "Subject")).toBe("[RESOLVED] Renewal declined: 29.00 EUR");
  expect(header(first, "Auto-Submitted")).toBe("auto-generated");
  expect(first).toContain("Content-Type: text/plain");
  expect(first).toContain("Content-Type: text/html");
  expect(server.mails.at(-1)?.to).toEqual(["one@example.com", "two@example.com"]);
});

test("hostile words add no header and no markup", async () => {
  await send(open(), hostileMessage);
  const { source = "", to } = server.mails.at(-1) ?? {};
  // In the body lines are broken anywhere.
  expect(source.split("\r\n\r\n", 1)[0]).not.toMatch(/^Bcc:/im);
  expect(to).toHaveLength(2);
  expect(source.length).toBeLessThan(3_000_000);
  const html = alertHtml(hostileMessage);
  expect(html).not.toMatch(/<script|<!channel|javascript:|[\0\u202e]/i);
  expect(html).toContain("&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; &amp; &quot;q&quot;");
  expect(html.match(/href="[^"]*"/g)).toEqual(['href="https://example.com/%3C!channel%3E|x"']);
  const text = alertText(hostileMessage);
  expect(text.split("\n").every((line) => line.length < 2_200)).toBe(true);
  expect(text.match(/^- /gm)).toHaveLength(300);
});

test.each([
  [451, { isRetryable: true, mayHaveArrived: false }],
  [550, { isRetryable: false, mayHaveArrived: false }],
])("a mail that is answered with %i", async (code, failure) => {
  server.refuseWith(code);
  await expect(send(open())).rejects.toMatchObject({
    ...failure,
    message: `127.0.0.1 did not accept the mail (${code})`,
  });
});

test("a wrong password is worth another try, once it is mended, and is not told", async () => {
  const { port } = new URL(server.url);
  const sent = send(open(`smtp://user:hunter22@127.0.0.1:${port}`));
  await expect(sent).rejects.toMatchObject({ isRetryable: true, mayHaveArrived: false });
  await expect(sent).rejects.not.toThrow(/hunter22/);
});

test("a server that is away", async () => {
  const port = await freePort();
  await expect(send(open(`smtp://user:hunter22@127.0.0.1:${port}`))).rejects.toMatchObject({
    isRetryable: true,
    mayHaveArrived: false,
  });
});

test("the server's host must be on a list, and is reached at a checked address only", async () => {
  const deps = channelDeps({ smtp: { url: server.url, from: "a@example.com" } });
  expect(tryOpen({ kind: "email", to: ["one@example.com"] }, deps).problem).toMatch(
    /^SMTP_URL: the host 127\.0\.0\.1 is not on the list/,
  );
  // In a URL that is not http the number stays as it is, and the system reads it as 127.0.0.1.
  const { port } = new URL(server.url);
  const odd = tryOpen(
    { kind: "email", to: ["one@example.com"] },
    channelDeps({
      smtp: { url: `smtp://2130706433:${port}`, from: "a@example.com" },
      allowedHosts: ["2130706433"],
    }),
  );
  const before = server.mails.length;
  if (odd.channel === undefined) throw new Error(odd.problem);
  await expect(send(odd.channel)).rejects.toThrow(/2130706433 is at a private address/);
  expect(server.mails).toHaveLength(before);
});
