import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { registerDoctor } from "../../src/main/cli/doctor/doctor.ts";
import type { CheckResult } from "../../src/app/check-result.ts";
import { createServiceClock, wallClock } from "../../src/platform/clock.ts";
import { createLog } from "../../src/platform/log.ts";
import { seededRandom } from "../../src/platform/random.ts";
import { recordEndpointProblems } from "../../src/parts/reconcile/endpoint-findings.ts";
import { inspectEndpoint } from "../../src/parts/endpoint/inspect-endpoint.ts";
import { testKey } from "../../src/parts/sandbox/engine/keys.ts";
import { type ServiceClient, createServiceClient } from "../../src/core/client/service-client.ts";
import { type EndpointStand, clearEndpoints, setUpEndpoints } from "../main/cli/endpoint-stand.ts";
import { runCommand } from "../main/cli/command-line.ts";

const url = "http://127.0.0.1:9/webhooks";
let stand: EndpointStand;
let client: ServiceClient;

beforeAll(async () => {
  stand = await setUpEndpoints();
  client = createServiceClient({
    baseUrl: stand.service.url,
    apiKey: testKey,
    log: createLog({ level: "silent", name: "test" }),
    wallClock,
    serviceClock: createServiceClock(wallClock),
    random: seededRandom("watch"),
  });
});
afterAll(async () => {
  await client.close();
  await stand.close();
});
beforeEach(() => clearEndpoints(stand));

async function watch() {
  const report = await inspectEndpoint({ db: stand.db, client }, url);
  if (report !== null) await recordEndpointProblems(stand.db, report, null);
  return report;
}
const findings = () =>
  stand.db("reconcile.findings").orderBy("key").select("key", "class", "severity", "state", "object_id");

async function doctor(): Promise<CheckResult | undefined> {
  const run = await runCommand(registerDoctor, ["doctor", "--json"], { env: stand.environment });
  const { findings: all } = JSON.parse(run.out) as { findings: CheckResult[] };
  return all.find(({ check }) => check === "endpoint");
}

it("keeps what is wrong as findings, and heals them when it is right again", async () => {
  await watch();
  expect(await findings()).toMatchObject([
    {
      key: `endpoint:not_registered:${url}`,
      class: "endpoint",
      severity: "critical",
      state: "open",
    },
  ]);
  await stand.endpoint("register");
  await stand.sandbox.control("POST", "/clock", { advance_seconds: 60 });
  await watch();
  expect(await findings()).toMatchObject([{ state: "healed" }]);
  const [endpoint] = await stand.endpoints();
  await stand.sandbox.ok("PATCH", `/v1/webhook_endpoints/${endpoint.id}`, { status: "disabled" });
  await stand.sandbox.control("POST", "/clock", { advance_seconds: 60 });
  const report = await watch();
  expect(report?.problems).toMatchObject([{ code: "disabled", subject: endpoint.id }]);
  expect(await findings()).toMatchObject([
    { key: `endpoint:disabled:${endpoint.id}`, state: "open", object_id: endpoint.id },
    { state: "healed" },
  ]);
});

it("knows its own rotation from one that was made elsewhere", async () => {
  await stand.endpoint("register");
  const [{ id }] = (await stand.endpoints()) as [{ id: string }];
  await stand.endpoint("rotate", "--grace-hours", "1");
  expect((await watch())?.problems).toEqual([]);
  await stand.sandbox.control("POST", "/clock", { advance_seconds: 3_700 });
  await stand.sandbox.ok("POST", `/v1/webhook_endpoints/${id}/rotate_secret`, {});
  expect((await watch())?.problems).toMatchObject([{ code: "unknown_rotation" }]);
});

it("has nothing to look at while nobody knows the address", async () => {
  expect(await inspectEndpoint({ db: stand.db, client }, null)).toBeNull();
  await stand.endpoint("register");
  expect(await inspectEndpoint({ db: stand.db, client }, null)).toMatchObject({ problems: [] });
});

const first = "http://127.0.0.1:9/first";
const second = "http://127.0.0.1:9/second";
const registerAt = async (at: string): Promise<string> => {
  const { out, error } = await stand.endpoint("register", "--url", at);
  expect(error).toBeNull();
  return out.split(" ")[0] ?? "";
};

it.each([
  ["no address is set: the last one counts", null, second, first],
  ["the last one is served", second, second, first],
  ["the first one is served", first, first, second],
])("shows each of two that were registered from here (%s)", async (_, at, served, other) => {
  const ids: Record<string, string> = {};
  for (const each of [first, second]) ids[each] = await registerAt(each);
  const report = await inspectEndpoint({ db: stand.db, client }, at);
  expect(report?.endpoints.map((each) => each.url).toSorted()).toEqual([first, second]);
  expect(report?.problems).toMatchObject([{ code: "other_address", subject: ids[other], severity: "warning" }]);
  expect(report?.problems[0]?.says).toContain(other);
  expect(report?.problems[0]?.says).toContain(served);
  await stand.sandbox.ok("PATCH", `/v1/webhook_endpoints/${ids[other]}`, { status: "disabled" });
  const later = await inspectEndpoint({ db: stand.db, client }, at);
  expect([later?.endpoints.length, later?.problems]).toEqual([2, []]);
});

it("shows in doctor each that was registered from here, and that none has the address that is set", async () => {
  await registerAt(first);
  expect(await doctor()).toMatchObject({
    status: "failed",
    detail: `no endpoint of the account has the address ${url}: no event arrives (and 1 more)`,
  });
  await stand.endpoint("register");
  expect(await doctor()).toMatchObject({
    status: "warning",
    detail: expect.stringContaining(first) as string,
    remedy: expect.stringContaining("set PUBLIC_URL") as string,
  });
});

it("shows in doctor", async () => {
  expect(await doctor()).toMatchObject({
    status: "failed",
    detail: `no endpoint of the account has the address ${url}: no event arrives`,
    remedy: 'run "node src/bin/tallyhook.js endpoint register"',
  });
  await stand.endpoint("register", "--events", "order.*");
  expect(await doctor()).toMatchObject({ status: "warning" });
  await stand.sandbox.control("POST", "/reset", { seed: "again" });
  await stand.endpoint("register");
  expect(await doctor()).toMatchObject({ status: "ok" });
});
