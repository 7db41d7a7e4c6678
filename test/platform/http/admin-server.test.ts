import { request } from "node:http";
import { createLog } from "../../../src/platform/log.ts";
import { afterEach, expect, test } from "vitest";
import { ConfigurationError } from "../../../src/platform/errors.ts";
import { type AdminServer, type AdminServerParts, startAdminServer } from "../../../src/platform/http/admin-server.ts";

const silentLog = createLog({ level: "silent", name: "test", destination: process.stderr });
const servers: AdminServer[] = [];
const token = "a-token-of-the-metrics";

async function start(parts: Partial<AdminServerParts> = {}, port = 0): Promise<string> {
  const server = await startAdminServer(
    {
      log: silentLog,
      isAlive: () => true,
      metrics: { contentType: "text/plain; version=0.0.4", text: async () => "up 1\n" },
      metricsToken: null,
      ...parts,
    },
    { host: "127.0.0.1", port },
  );
  servers.push(server);
  return server.url;
}

/** Unlike fetch, it sends a header `host`. */
function get(url: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const req = request(url, { headers }, (res) => {
      res.resume();
      resolve(res.statusCode ?? 0);
    });
    req.on("error", reject).end();
  });
}

afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

test("says that the process is alive, and nothing else", async () => {
  const url = await start();
  const answer = await fetch(`${url}/healthz`);
  expect([answer.status, await answer.json()]).toEqual([200, { status: "ok" }]);
  expect((await fetch(`${url}/<b>`)).status).toBe(404);
  expect(await (await fetch(`${url}/secret-path`)).text()).not.toContain("secret-path");
  expect((await fetch(`${url}/healthz`, { method: "POST" })).status).toBe(405);
});

test("answers 503 when the process is stalled", async () => {
  const url = await start({ isAlive: () => false });
  expect((await fetch(`${url}/healthz`)).status).toBe(503);
});

test("shows the metrics to this machine where no token is set", async () => {
  const url = await start();
  const answer = await fetch(`${url}/metrics?x=1`);
  expect([answer.status, answer.headers.get("content-type"), await answer.text()]).toEqual([
    200,
    "text/plain; version=0.0.4",
    "up 1\n",
  ]);
});

test.each([
  ["x-forwarded-for", "10.0.0.1"],
  ["forwarded", "for=10.0.0.1"],
  ["x-forwarded-host", "localhost"],
  ["x-real-ip", "127.0.0.1"],
  ["via", "1.1 proxy"],
  // A page whose name was made to lead to this machine.
  ["host", "evil.example.com"],
])("shows no metrics without a token where %s says that somebody else asks", async (name, value) => {
  const url = await start();
  expect(await get(`${url}/metrics`, { [name]: value })).toBe(403);
});

test.each([
  ["", 401],
  ["Bearer wrong", 401],
  ["Bearer a-token-of-the-metric", 401],
  ["Basic a-token-of-the-metrics", 401],
  [`Bearer ${token}`, 200],
  [`bearer ${token}`, 200],
])("where a token is set, authorization %j gets %d", async (authorization, status) => {
  const url = await start({ metricsToken: token });
  const headers = { ...(authorization === "" ? {} : { authorization }), "x-forwarded-for": "::1" };
  expect(await get(`${url}/metrics`, headers)).toBe(status);
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
});

test("answers healthz while the metrics hang, and 500 where they cannot be written", async () => {
  let fail: (reason: Error) => void = () => {};
  const text = () => new Promise<string>((_, reject) => (fail = reject));
  const url = await start({ metrics: { contentType: "text/plain", text } });
  const metrics = fetch(`${url}/metrics`);
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
  fail(new Error("with a secret in it"));
  const answer = await metrics;
  expect([answer.status, await answer.text()]).toEqual([
    500,
    '{"status":"failed","message":"The metrics could not be written."}\n',
  ]);
});

test("closes though a client keeps its connection", async () => {
  const url = await start();
  await (await fetch(`${url}/healthz`)).text();
  await Promise.all(servers.splice(0).map((server) => server.close()));
  await expect(fetch(`${url}/healthz`)).rejects.toThrow();
});

test("says which setting to change where the port is taken", async () => {
  const { port } = new URL(await start());
  await expect(start({}, Number(port))).rejects.toThrow(ConfigurationError);
  await expect(start({}, Number(port))).rejects.toThrow(/ADMIN_PORT: another program listens/);
});
