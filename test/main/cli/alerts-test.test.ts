import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { registerAlerts } from "../../../src/parts/alerts/cli/alerts.ts";
import { registerDoctor } from "../../../src/main/cli/doctor/doctor.ts";
import type { CheckResult } from "../../../src/app/check-result.ts";
import { type ChannelServer, answering, startChannelServer } from "../../alerts/channels/channel-server.ts";
import { runCommand } from "./command-line.ts";

let server: ChannelServer;
let directory: string;
let env: Record<string, string>;

beforeAll(async () => {
  server = await startChannelServer();
  directory = await mkdtemp(join(tmpdir(), "tallyhook-alerts-"));
  const file = join(directory, "alerts.jsonc");
  await writeFile(
    file,
    `{
      "channels": {
        "log": { "kind": "stdout" },
        "team": { "kind": "slack", "urlFrom": "ALERT_TEAM_URL" },
        "on-call": { "kind": "pagerduty", "routingKeyFrom": "ALERT_KEY", "url": "${server.url}/v2/enqueue" },
        "crm": { "kind": "webhook", "urlFrom": "ALERT_CRM_URL", "secretFrom": "ALERT_CRM_SECRET" },
      },
      "destinations": { "privateHosts": ["127.0.0.1"] },
      "links": { "order": "https://admin.example.com/orders/{id}" },
    }`,
  );
  env = {
    ALERT_SETTINGS_FILE: file,
    ALERT_TEAM_URL: `${server.url}/services/hunter2`,
    ALERT_KEY: "key_of_the_integration",
    ALERT_TYPO_URL: "https://elsewhere.example/hunter2",
  };
});
beforeEach(() => {
  server.posts.splice(0);
  server.answerWith(answering(200));
});
afterAll(async () => {
  await server.close();
  await rm(directory, { recursive: true });
});

const testChannel = (name: string, more: Record<string, string> = {}) =>
  runCommand(registerAlerts, ["alerts", "test", name], { env: { ...env, ...more } });
const bodies = () => server.posts.map(({ body }) => JSON.parse(body) as Record<string, unknown>);

describe("tallyhook alerts test", () => {
  test("sends what the rules say, one of each severity, the day's list and an end, with links", async () => {
    const { out, error } = await testChannel("team");
    expect(error).toBeNull();
    const said = out.trimEnd().split("\n");
    expect(said.slice(0, -1).map((line) => line.split(/ {2,}/))).toEqual([
      ["critical", "an order, fraud suspected", "127.0.0.1 answered 200"],
      ["error", "a first payment", "127.0.0.1 answered 200"],
      ["warning", "an order, card expired", "127.0.0.1 answered 200"],
      ["warning", "a renewal, paid", "127.0.0.1 answered 200"],
      ["error", "the daily list", "127.0.0.1 answered 200"],
    ]);
    expect(said.at(-1)).toBe('Channel "team" accepted 5 messages, marked TEST.');
    for (const { body } of server.posts) expect(body).toMatch(/TEST (49|2 renewals LOST)/);
    expect(server.posts[0]?.body).toContain("https://admin.example.com/orders/sample-order");
    expect(out).not.toContain("hunter2");
    const keys = server.posts.map(({ headers }) => headers["idempotency-key"]);
    await testChannel("team");
    const again = server.posts.slice(5).map(({ headers }) => headers["idempotency-key"]);
    expect(new Set([...keys, ...again]).size).toBe(10);
  });

  test("--all sends every rule's every stage", async () => {
    const { error } = await runCommand(registerAlerts, ["alerts", "test", "log", "--all"], { env });
    expect(error).toBeNull();
    const { out } = await runCommand(registerAlerts, ["alerts", "test", "team", "--all"], { env });
    expect(out).toContain("a renewal, lost ");
    expect(out).toContain("a storm of card-numbers ");
    expect(server.posts.length).toBeGreaterThan(40);
  });

  test("leaves no incident open at PagerDuty", async () => {
    await testChannel("on-call");
    const keysOf = (action: string) =>
      bodies().flatMap((event) => (event["event_action"] === action ? [event["dedup_key"]] : []));
    expect(keysOf("trigger")).toHaveLength(4);
    expect(keysOf("resolve")).toEqual(expect.arrayContaining(keysOf("trigger")));
  });

  test("leaves no incident open at a webhook's receiver", async () => {
    await testChannel("crm", {
      ALERT_CRM_URL: `${server.url}/alerts`,
      ALERT_CRM_SECRET: `whsec_${Buffer.from("hunter2 hunter2 hunter2 hunter2").toString("base64")}`,
    });
    const keysOf = (type: string) =>
      bodies().flatMap((event) =>
        event["type"] === type ? [(event["data"] as { object: { dedup_key: string } }).object.dedup_key] : [],
      );
    expect(keysOf("alert.trigger")).toHaveLength(4);
    expect(keysOf("alert.resolve")).toEqual(expect.arrayContaining(keysOf("alert.trigger")));
  });

  test.each([
    ["teem", 64, 'there is no channel "teem". Did you mean "team"?'],
    ["nothing", 64, "There are: log, team, on-call, crm."],
    ["crm", 2, 'Channel "crm": set ALERT_CRM_SECRET or ALERT_CRM_SECRET_FILE.'],
  ])("%s ends with %i and says: %s", async (name, exitCode, says) => {
    const { error } = await testChannel(name);
    expect(error).toMatchObject({
      exitCode,
      message: expect.stringContaining(says) as string,
    });
  });

  test("a channel that refuses ends it, with what it said", async () => {
    server.answerWith(answering(404, "no_service"));
    const { error } = await testChannel("team");
    expect(server.posts).toHaveLength(1);
    expect(error).toMatchObject({
      exitCode: 2,
      message: 'Channel "team" did not accept the message: 127.0.0.1 answered 404 no_service.',
    });
  });
});

test("doctor looks at settings, secrets and hosts of every channel, and sends nothing", async () => {
  const { out } = await runCommand(registerDoctor, ["doctor", "--json"], {
    env: { ...env, DATABASE_URL: "postgres://127.0.0.1:1/none" },
  });
  const { findings } = JSON.parse(out) as { findings: CheckResult[] };
  const of = (name: string) => findings.find(({ check }) => check === name);
  expect(of("alerts")).toMatchObject({
    status: "warning",
    detail: "no channel uses ALERT_TYPO_URL",
  });
  expect(of("alerts log")).toMatchObject({ status: "ok", detail: "stdout" });
  expect(of("alerts team")).toMatchObject({ status: "ok", detail: "slack at 127.0.0.1" });
  expect(of("alerts crm")).toMatchObject({
    status: "failed",
    detail: expect.stringContaining("ALERT_CRM_SECRET") as string,
  });
  expect(of("alerts unsent")).toMatchObject({ status: "skipped" });
  expect(server.posts).toEqual([]);
  expect(out).not.toContain("hunter2");
});

test("doctor says where wrong settings are", async () => {
  const file = join(directory, "wrong.jsonc");
  await writeFile(file, '{\n  "rules": { "decline": { "severity": "hgih" } }\n}');
  const { out } = await runCommand(registerDoctor, ["doctor", "--json"], {
    env: { ALERT_SETTINGS_FILE: file, DATABASE_URL: "postgres://127.0.0.1:1/none" },
  });
  const { findings } = JSON.parse(out) as { findings: CheckResult[] };
  expect(findings.filter(({ check }) => check.startsWith("alerts"))).toMatchObject([
    {
      status: "failed",
      detail: expect.stringContaining("line 2, rules.decline.severity") as string,
    },
  ]);
});
