import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { Channel } from "../../../src/parts/alerts/channels/channel.ts";
import { tryOpen } from "../../../src/parts/alerts/channels/channel-kinds.ts";
import type { ResolveHost } from "../../../src/platform/http/destination-guard.ts";
import { type ChannelServer, answering, startChannelServer } from "./channel-server.ts";
import { channelDeps } from "./channel-deps.ts";
import { message } from "../messages.ts";

let server: ChannelServer;
let port: string;
const opened: Channel[] = [];

beforeAll(async () => {
  server = await startChannelServer();
  ({ port } = new URL(server.url));
});
afterEach(async () => {
  server.posts.splice(0);
  server.answerWith(answering(200));
  await Promise.all(opened.splice(0).map((channel) => channel.close()));
});
afterAll(() => server.close());

const attempt = (url: string, hosts: Parameters<typeof channelDeps>[0]) =>
  tryOpen({ kind: "slack", urlFrom: "ALERT_URL" }, channelDeps({ ...hosts, secrets: { ALERT_URL: url } }));

function open(url: string, hosts: Parameters<typeof channelDeps>[0]): Channel {
  const { channel, problem } = attempt(url, hosts);
  if (channel === undefined) throw new Error(problem);
  opened.push(channel);
  return channel;
}

const send = (channel: Channel) => channel.send(message, { signal: AbortSignal.timeout(60_000) });

/** Answers each question with the next of these addresses. */
const answeringInTurn = (...addresses: string[]): ResolveHost => {
  let asked = 0;
  return async () => {
    const address = addresses[Math.min(asked++, addresses.length - 1)] ?? "";
    return [{ address, family: address.includes(":") ? 6 : 4 }];
  };
};

test("a private host is reached by http where the settings say so", async () => {
  const answer = await send(open(`${server.url}/hook`, { privateHosts: ["127.0.0.1"] }));
  expect(answer).toBe("127.0.0.1 answered 200");
  expect(server.posts).toMatchObject([{ path: "/hook" }]);
});

test.each([
  ["https://elsewhere.example/T0/hunter2", /the host elsewhere\.example is not on the list/],
  ["https://hooks.example.evil.example/hunter2", /is not on the list/],
  ["https://hooks.example./hunter2", /is not on the list/],
  ["https://hooks.example@evil.example/hunter2", /user name or password/],
  ["http://hooks.example/hunter2", /must be reached by https/],
  ["ftp://hooks.example/hunter2", /is no URL/],
  ["hunter2", /is no URL/],
  // The parser of URLs turns all of these into 127.0.0.1.
  ["https://2130706433/hunter2", /the host 127\.0\.0\.1 is not on the list/],
  ["https://0x7f.1/hunter2", /the host 127\.0\.0\.1 is not on the list/],
  ["https://0177.0.0.1/hunter2", /the host 127\.0\.0\.1 is not on the list/],
  ["https://[::ffff:127.0.0.1]/hunter2", /the host ::ffff:7f00:1 is not on the list/],
])("refuses %s before anything is looked up", (url, says) => {
  const { problem } = attempt(url, { allowedHosts: ["hooks.example"] });
  expect(problem).toMatch(says);
  expect(problem).not.toContain("hunter2");
});

test.each([
  ["127.0.0.1", /hooks\.example is at a private address/],
  ["10.1.2.3", /is at a private address/],
  ["169.254.169.254", /is at an address to which nothing may be sent/],
  ["::ffff:169.254.169.254", /is at an address to which nothing may be sent/],
  ["::1", /is at a private address/],
])("refuses an allowed name that leads to %s", async (address, says) => {
  const channel = open(`https://hooks.example:${port}/hunter2`, {
    allowedHosts: ["hooks.example"],
    resolve: answeringInTurn(address),
  });
  const sent = send(channel);
  await expect(sent).rejects.toThrow(says);
  await expect(sent).rejects.toMatchObject({ isRetryable: true, mayHaveArrived: false });
  await expect(sent).rejects.not.toThrow(/hunter2/);
});

test("one bad address among good ones is enough to refuse", async () => {
  const channel = open(`http://hooks.internal:${port}/`, {
    privateHosts: ["hooks.internal"],
    resolve: async () => [
      { address: "127.0.0.1", family: 4 },
      { address: "169.254.169.254", family: 4 },
    ],
  });
  await expect(send(channel)).rejects.toThrow(/to which nothing may be sent/);
  expect(server.posts).toEqual([]);
});

test("a private host never leads to a metadata service, by name or by address", async () => {
  const named = open(`http://hooks.internal:${port}/`, {
    privateHosts: ["hooks.internal"],
    resolve: answeringInTurn("169.254.169.254"),
  });
  await expect(send(named)).rejects.toThrow(/to which nothing may be sent/);
  const literal = () => open("http://169.254.169.254/latest", { privateHosts: ["169.254.169.254"] });
  expect(literal).toThrow(/to which nothing may be sent/);
});

test("connects to the address that was checked, though the name answers differently the second time", async () => {
  let asked = 0;
  const resolve: ResolveHost = async () => {
    asked += 1;
    return [{ address: asked === 1 ? "127.0.0.1" : "169.254.169.254", family: 4 }];
  };
  const channel = open(`http://hooks.internal:${port}/`, {
    privateHosts: ["hooks.internal"],
    resolve,
  });
  await send(channel);
  expect(asked).toBe(1);
  expect(server.posts).toHaveLength(1);
});

test("a name that was good when it was looked at is refused when it leads elsewhere later", async () => {
  const deps = channelDeps({
    allowedHosts: ["hooks.example"],
    secrets: { ALERT_URL: `https://hooks.example:${port}/` },
    resolve: answeringInTurn("93.184.216.34", "127.0.0.1"),
  });
  expect(await deps.guard.resolve("hooks.example")).toHaveLength(1);
  const { channel } = tryOpen({ kind: "slack", urlFrom: "ALERT_URL" }, deps);
  if (channel === undefined) throw new Error("it was not opened");
  opened.push(channel);
  await expect(send(channel)).rejects.toThrow(/is at a private address/);
  expect(server.posts).toEqual([]);
});

test("a redirect is not followed, wherever it leads", async () => {
  const elsewhere = await startChannelServer();
  try {
    for (const location of [`${elsewhere.url}/`, "http://169.254.169.254/latest/meta-data/"]) {
      server.answerWith(answering(307, "", { location }));
      await expect(send(open(`${server.url}/`, { privateHosts: ["127.0.0.1"] }))).rejects.toThrow(
        "127.0.0.1 answered 307; redirects are not followed",
      );
    }
    expect(elsewhere.posts).toEqual([]);
  } finally {
    await elsewhere.close();
  }
});

test("a name without an address, and a server that is away, have surely not got it", async () => {
  const nowhere = open("https://hooks.example/", {
    allowedHosts: ["hooks.example"],
    resolve: async () => [],
  });
  await expect(send(nowhere)).rejects.toMatchObject({
    isRetryable: true,
    mayHaveArrived: false,
    message: "hooks.example could not be reached (ENOTFOUND)",
  });
});
