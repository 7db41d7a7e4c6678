import { afterEach, expect, test } from "vitest";
import { ConfigurationError } from "../../../src/platform/errors.ts";
import { type HealthServer, startHealthServer } from "../../../src/platform/http/listen.ts";

const servers: HealthServer[] = [];

async function start(port: number, isAlive = () => true): Promise<string> {
  const server = await startHealthServer({ isAlive }, { host: "127.0.0.1", port });
  servers.push(server);
  return server.url;
}

afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

test("says that the process is alive, and nothing else", async () => {
  const url = await start(0);
  const answer = await fetch(`${url}/healthz`);
  expect([answer.status, await answer.json()]).toEqual([200, { status: "ok" }]);
  expect((await fetch(`${url}/metrics`)).status).toBe(404);
  expect((await fetch(`${url}/healthz`, { method: "POST" })).status).toBe(404);
});

test("answers 503 when the process is stalled", async () => {
  const url = await start(0, () => false);
  expect((await fetch(`${url}/healthz`)).status).toBe(503);
});

test("closes though a client keeps its connection", async () => {
  const url = await start(0);
  await (await fetch(`${url}/healthz`)).text();
  await Promise.all(servers.splice(0).map((server) => server.close()));
  await expect(fetch(`${url}/healthz`)).rejects.toThrow();
});

test("says which setting to change where the port is taken", async () => {
  const { port } = new URL(await start(0));
  await expect(start(Number(port))).rejects.toThrow(ConfigurationError);
  await expect(start(Number(port))).rejects.toThrow(/ADMIN_PORT: another program listens/);
});
