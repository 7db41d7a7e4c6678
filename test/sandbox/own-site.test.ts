import { once } from "node:events";
import { type IncomingMessage, type OutgoingHttpHeaders, request } from "node:http";
import { json } from "node:stream/consumers";
import { expect, test } from "vitest";
import { createLog } from "../../src/platform/log.ts";
import { testKey } from "../../src/parts/sandbox/engine/keys.ts";
import { startSandbox } from "../../src/parts/sandbox/start-sandbox.ts";
import { type Json, aCustomer } from "./harness.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();

/** A request with exactly these headers, which `fetch` would not send. */
async function ask(
  url: string,
  method: string,
  path: string,
  headers: OutgoingHttpHeaders,
): Promise<{ status: number; body: Json }> {
  const asked = request(`${url}${path}`, { method, headers: { connection: "close", ...headers } });
  asked.end();
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  const isJson = answer.headers["content-type"]?.startsWith("application/json") ?? false;
  const body: Json = isJson ? await json(answer) : null;
  answer.resume();
  return { status: answer.statusCode ?? 0, body };
}

const authorization = `Bearer ${testKey}`;
const everyDoor: [string, string, OutgoingHttpHeaders][] = [
  ["POST", "/_sandbox/reset", {}],
  ["GET", "/_sandbox/snapshot", {}],
  ["GET", "/v1/customers", { authorization }],
  ["OPTIONS", "/v1/customers", {}],
  ["POST", "/gateway/api/transact.php", {}],
  ["POST", "/capture", { authorization }],
  ["GET", "/openapi.json", {}],
  ["GET", "/docs/start.js", {}],
];

test.each<[string, OutgoingHttpHeaders]>([
  ["another site", { origin: "https://attacker.example" }],
  ["another port of this machine", { origin: "http://127.0.0.1:9" }],
  ["a file", { origin: "null" }],
  ["another site, by an image or a form", { "sec-fetch-site": "cross-site" }],
  ["another program of this machine", { "sec-fetch-site": "same-site" }],
  ["a name that points here", { host: "attacker.example" }],
  ["a name that looks like this machine", { host: "127.0.0.1.attacker.example" }],
  ["a name before this machine", { host: "attacker.example@127.0.0.1" }],
  ["no host name", { host: "/" }],
])("a page of %s reaches nothing, and is told why", async (_, headers) => {
  const { id } = await aCustomer(sandbox);
  for (const [method, path, own] of everyDoor) {
    const { status, body } = await ask(sandbox.url, method, path, { ...own, ...headers });
    expect([status, body?.error?.code], `${method} ${path}`).toEqual([403, "ip_not_allowed"]);
    expect(body.error.message).toMatch(/^The sandbox (takes no requests from|does not answer to)/);
  }
  expect(await sandbox.ok("GET", `/v1/customers/${id}`)).toMatchObject({ id });
});

test("programs and the sandbox's own pages are answered", async () => {
  const { host } = new URL(sandbox.url);
  for (const headers of [
    {},
    { host: "localhost:4010" },
    { host: "[::1]:4010" },
    { origin: sandbox.url, "sec-fetch-site": "same-origin" },
    { host, origin: `http://${host}` },
    { "sec-fetch-site": "none", "sec-fetch-mode": "navigate" },
  ]) {
    for (const path of ["/_sandbox", "/openapi.json", "/v1/plans"]) {
      const own = path.startsWith("/v1") ? { authorization } : {};
      expect((await ask(sandbox.url, "GET", path, { ...own, ...headers })).status).toBe(200);
    }
  }
});

test("a link to the documentation may be followed from anywhere, a frame of it not", async () => {
  const link = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" };
  const document = { ...link, "sec-fetch-dest": "document" };
  expect((await ask(sandbox.url, "GET", "/docs", document)).status).toBe(200);
  for (const [method, path, headers] of [
    ["GET", "/docs", { ...link, "sec-fetch-dest": "iframe" }],
    ["POST", "/docs", document],
    ["GET", "/_sandbox", document],
    ["GET", "/docs", { ...document, host: "attacker.example" }],
  ] as const) {
    expect((await ask(sandbox.url, method, path, headers)).status).toBe(403);
  }
});

test("a host name that was allowed is answered; on every address any address is", async () => {
  const log = createLog({ level: "fatal", name: "test" });
  const open = await startSandbox({ port: 0, host: "0.0.0.0", allowHosts: ["Sandbox"], log });
  const plans = async (host: string) => (await ask(open.url, "GET", "/v1/plans", { authorization, host })).status;
  expect(new URL(open.url).hostname).toBe("127.0.0.1");
  expect(await plans("sandbox:4010")).toBe(200);
  expect(await plans("192.0.2.7:4010")).toBe(200);
  expect(await plans("[2001:db8::7]:4010")).toBe(200);
  expect(await plans("sandbox.attacker.example")).toBe(403);
  await open.close();
  expect((await ask(sandbox.url, "GET", "/openapi.json", { host: "192.0.2.7" })).status).toBe(403);
});
