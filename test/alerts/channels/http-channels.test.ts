import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Channel } from "../../../src/parts/alerts/channels/channel.ts";
import { createHttpPost } from "../../../src/parts/alerts/channels/http-post.ts";
import { openChannels, tryOpen } from "../../../src/parts/alerts/channels/channel-kinds.ts";
import type { ChannelSettings } from "../../../src/parts/alerts/channels/channel-kinds.ts";
import { signatureScheme, signatureSchemeNames } from "../../../src/core/contract/signature/signature-scheme.ts";
import { freePort } from "../../support/free-port.ts";
import { channelDeps } from "./channel-deps.ts";
import { type ChannelServer, answering, startChannelServer } from "./channel-server.ts";
import { hostile, message } from "../messages.ts";

let server: ChannelServer;
const opened: Channel[] = [];
const token = "T0/B0/hunter2";
const secret = `whsec_${Buffer.from("hunter2 hunter2 hunter2 hunter2").toString("base64")}`;
const now = new Date("2026-11-21T10:00:00Z");

beforeAll(async () => {
  server = await startChannelServer();
});
afterEach(async () => {
  server.answerWith(answering(200));
  await Promise.all(opened.splice(0).map((channel) => channel.close()));
});
afterAll(() => server.close());

function open(settings: ChannelSettings, given: Parameters<typeof channelDeps>[0] = {}): Channel {
  const deps = channelDeps({
    privateHosts: ["127.0.0.1"],
    clock: { now: () => now },
    secrets: { ALERT_URL: `${server.url}/services/${token}`, ALERT_KEY: secret },
    ...given,
  });
  const { channel, problem } = tryOpen(settings, deps);
  if (channel === undefined) throw new Error(problem);
  opened.push(channel);
  return channel;
}

const slack: ChannelSettings = { kind: "slack", urlFrom: "ALERT_URL" };
const webhook: ChannelSettings = { kind: "webhook", urlFrom: "ALERT_URL", secretFrom: "ALERT_KEY" };
const send = (channel: Channel, sent = message) => channel.send(sent, { signal: AbortSignal.timeout(60_000) });
const last = () => {
  const post = server.posts.at(-1);
  if (post === undefined) throw new Error("nothing came");
  return post;
};

test("Slack gets JSON at the secret path, with the key of the message", async () => {
  expect(await send(open(slack))).toBe("127.0.0.1 answered 200");
  expect(last()).toMatchObject({
    path: `/services/${token}`,
    headers: {
      "content-type": "application/json; charset=utf-8",
      "idempotency-key": message.idempotencyKey,
    },
  });
  expect(JSON.parse(last().body)).toHaveProperty("blocks");
});

test("PagerDuty gets the key of the integration in the event", async () => {
  const channel = open({
    kind: "pagerduty",
    routingKeyFrom: "ALERT_KEY",
    url: `${server.url}/v2/enqueue`,
  });
  server.answerWith(answering(202));
  await send(channel);
  await send(channel, { ...message, action: "resolve" });
  const [begun, ended] = server.posts.slice(-2).map(({ body }) => JSON.parse(body) as object);
  expect(begun).toMatchObject({ routing_key: secret, event_action: "trigger" });
  expect(ended).toEqual({
    routing_key: secret,
    event_action: "resolve",
    dedup_key: message.dedupKey,
  });
});

describe.each(signatureSchemeNames)("a webhook signed as %s", (name) => {
  const scheme = signatureScheme(name);

  test("verifies by what verifies the service's own webhooks", async () => {
    await send(open(webhook, { scheme }));
    const { rawHeaders, body } = last();
    const secrets = [{ id: "one", value: secret, notBefore: null, notAfter: null }];
    const signed = { rawHeaders, secrets, now, toleranceSeconds: 300 };
    expect(scheme.verify({ ...signed, body: Buffer.from(body) })).toEqual({
      ok: true,
      secretId: "one",
    });
    expect(scheme.verify({ ...signed, body: Buffer.from(`${body} `) })).toMatchObject({
      ok: false,
    });
  });
});

test("a webhook is an event as the service's own are, with the same id on a repeat", async () => {
  const channel = open(webhook);
  await send(channel);
  const first = last().body;
  await send(channel);
  expect(last().body).toBe(first);
  const { dedupKey, idempotencyKey, at, ...object } = message;
  expect(JSON.parse(first)).toEqual({
    id: idempotencyKey,
    type: "alert.trigger",
    created_at: at,
    data: { object: { ...object, dedup_key: dedupKey } },
  });
});

test.each([slack, webhook, { kind: "pagerduty", routingKeyFrom: "ALERT_KEY" } as const])(
  "the title of a message to $kind is one line of bounded length",
  async (settings) => {
    const url = `${server.url}/v2/enqueue`;
    const title = `Renewal\r\ndeclined${hostile}`;
    await send(open(settings.kind === "pagerduty" ? { ...settings, url } : settings), {
      ...message,
      title,
    });
    const body = JSON.parse(last().body) as {
      text?: string;
      payload?: { summary: string };
      data?: { object: { title: string } };
    };
    const told = body.text ?? body.payload?.summary ?? body.data?.object.title ?? "";
    expect(told).toContain("Renewal declined");
    // Slack's text has the severity, a mark, and entities for `<`, `>` and `&` as well.
    expect(told).toMatch(/^[^\p{Cc}\u202a-\u202e\u2066-\u2069]{1,400}$/u);
  },
);

test("a key that no header can carry travels as its hash", async () => {
  await send(open(webhook, { scheme: signatureScheme("standard-webhooks") }), {
    ...message,
    idempotencyKey: hostile,
  });
  expect(last().headers["idempotency-key"]).toMatch(/^sha256:[0-9a-f]{64}$/);
  expect(last().headers["webhook-id"]).toBe(last().headers["idempotency-key"]);
});

describe("what is not taken", () => {
  const failures: [number, string, Record<string, string>, object][] = [
    [400, "invalid_payload", {}, { isRetryable: false, message: "127.0.0.1 answered 400 invalid_payload" }],
    [403, "action_prohibited", {}, { isRetryable: true }],
    [404, "no_service", {}, { isRetryable: true, message: "127.0.0.1 answered 404 no_service" }],
    [410, `<html>${token}`, {}, { isRetryable: true, message: "127.0.0.1 answered 410" }],
    [413, "", {}, { isRetryable: false }],
    [429, "", { "retry-after": "7" }, { isRetryable: true, retryAfterMs: 7_000 }],
    [
      503,
      "",
      { date: "Sun, 06 Nov 1994 08:49:07 GMT", "retry-after": "Sun, 06 Nov 1994 08:49:37 GMT" },
      { isRetryable: true, retryAfterMs: 30_000 },
    ],
    [500, "", {}, { isRetryable: true, retryAfterMs: null }],
  ];
  test.each(failures)("%i %s %j", async (status, body, headers, failure) => {
    server.answerWith(answering(status, body, headers));
    const sent = send(open(slack));
    await expect(sent).rejects.toMatchObject({ ...failure, mayHaveArrived: false });
    await expect(sent).rejects.not.toThrow(/hunter2/);
  });

  test("an answer without an end is cut off and counts by its status", async () => {
    server.answerWith((response) => {
      response.writeHead(200);
      const pour = (): void => {
        while (!response.destroyed && response.write("x".repeat(8_192)));
        response.once("drain", pour);
      };
      pour();
    });
    expect(await send(open(slack))).toBe("127.0.0.1 answered 200");
  });

  test("a server that does not answer, or breaks off, may have got it", async () => {
    const deps = channelDeps({ privateHosts: ["127.0.0.1"] });
    const http = createHttpPost(deps, new URL(`${server.url}/${token}`), 100);
    server.answerWith(() => {});
    const silent = http.post("{}", {}, AbortSignal.timeout(60_000));
    await expect(silent).rejects.toMatchObject({
      isRetryable: true,
      mayHaveArrived: true,
      message: "127.0.0.1 could not be reached (no answer in time)",
    });
    server.answerWith((response) => response.destroy());
    const broken = http.post("{}", {}, AbortSignal.timeout(60_000));
    await expect(broken).rejects.toMatchObject({ isRetryable: true, mayHaveArrived: true });
    await http.close();
  });

  test("a server that is away has surely not got it, and its address is not told", async () => {
    const channel = open(slack, {
      secrets: { ALERT_URL: `http://127.0.0.1:${await freePort()}/${token}` },
    });
    const sent = send(channel);
    await expect(sent).rejects.toMatchObject({
      isRetryable: true,
      mayHaveArrived: false,
      message: "127.0.0.1 could not be reached (ECONNREFUSED)",
    });
  });
});

test("all channels that cannot work are named at once, without their secrets", () => {
  const settings: Record<string, ChannelSettings> = {
    log: { kind: "stdout", format: "json" },
    team: { kind: "slack", urlFrom: "ALERT_TEAM_URL" },
    crm: { kind: "webhook", urlFrom: "ALERT_CRM_URL", secretFrom: "ALERT_CRM_SECRET" },
    mail: { kind: "email", to: ["one@example.com"] },
  };
  const secrets = { ALERT_CRM_URL: "https://crm.example/hunter2", ALERT_CRM_SECRET: "hunter2" };
  const attempt = () => openChannels(settings, channelDeps({ secrets }));
  expect(attempt).toThrow(
    /channel "team": set ALERT_TEAM_URL or ALERT_TEAM_URL_FILE[^]*channel "crm": ALERT_CRM_SECRET has 7 bytes; at least 16 are needed[^]*channel "mail": SMTP_URL and MAIL_FROM are not set/,
  );
  expect(attempt).not.toThrow(/hunter2/);
});
