import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ServiceUnavailableError } from "../../src/core/client/service-errors.ts";
import { getOrder } from "../../src/core/contract/resources/orders.ts";
import { loadConfig } from "../../src/app/config/config.ts";
import { createRuntime } from "../../src/app/create-runtime.ts";
import type { Runtime } from "../../src/app/runtime.ts";
import { createLog } from "../../src/platform/log.ts";
import { testKey } from "../../src/parts/sandbox/engine/keys.ts";
import { allParts } from "../../src/main/parts.ts";

const arrivals: { path: string; at: number }[] = [];
/** The first answer is a 429 that asks for a second of peace. */
const service = createServer((request, response) => {
  arrivals.push({ path: request.url ?? "", at: performance.now() });
  const isFirst = arrivals.length === 1;
  response.writeHead(isFirst ? 429 : 200, {
    "content-type": "application/json",
    ...(isFirst ? { "retry-after": "1" } : {}),
  });
  response.end("{}");
});
let runtime: Runtime;
let location: { baseUrl: string; apiKey: string };

beforeAll(async () => {
  await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve));
  const { port } = service.address() as AddressInfo;
  location = { baseUrl: `http://127.0.0.1:${port}`, apiKey: testKey };
  runtime = createRuntime(allParts, loadConfig({}), createLog({ level: "silent", name: "test" }));
});

afterAll(async () => {
  await runtime.close();
  service.close();
});

test("what one reader of a process is told of the pace, another keeps to", async () => {
  const [events, nightly] = [runtime.serviceClient(location), runtime.serviceClient({ ...location })];
  const refused = events.get(getOrder, { params: { id: "1" } }, { deadlineMs: 500 });
  await expect(refused).rejects.toThrow(ServiceUnavailableError);
  await nightly.get(getOrder, { params: { id: "2" } });
  const [first, second] = arrivals;
  expect(second?.path).toBe("/v1/orders/2");
  expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThan(900);
});

test("another location has a client of its own", () => {
  const other = { ...location, apiKey: `${testKey}_other` };
  expect(runtime.serviceClient(other)).not.toBe(runtime.serviceClient(location));
});
