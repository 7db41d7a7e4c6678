import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { registerEndpoint } from "../../../src/parts/endpoint/cli/endpoint.ts";
import { runReceiver } from "../../../src/app/processes/run-receiver.ts";
import { loadConfig } from "../../../src/app/config/config.ts";
import { readAudit } from "../../../src/app/people/audit.ts";
import { UsageError } from "../../../src/platform/errors.ts";
import { createLog } from "../../../src/platform/log.ts";
import { migrateQueueSchema } from "../../../src/core/queue/backend.ts";
import { createRuntime } from "../../../src/app/create-runtime.ts";
import { runCommand } from "./command-line.ts";
import { type EndpointStand, clearEndpoints, setUpEndpoints } from "./endpoint-stand.ts";
import { allParts } from "../../../src/main/parts.ts";

let stand: EndpointStand;

beforeAll(async () => {
  stand = await setUpEndpoints();
});
afterAll(() => stand.close());
beforeEach(() => clearEndpoints(stand));

const registered = async (): Promise<string> => {
  const { out, error } = await stand.endpoint("register");
  expect(error).toBeNull();
  return out.split(" ")[0] ?? "";
};

describe("endpoint register", () => {
  it("makes the endpoint and stores its secret, without showing it", async () => {
    const { out, err, error } = await stand.endpoint("register", "--description", "ours");
    expect(error).toBeNull();
    expect(await stand.endpoints()).toMatchObject([
      { url: "http://127.0.0.1:9/webhooks", enabled_events: ["*"], description: "ours" },
    ]);
    const [secret] = await stand.secrets();
    expect(secret?.value).toBe(stand.service.given[0]);
    expect(out).toContain(secret?.id);
    expect(out + err).not.toContain(secret?.value);
  });

  it("refuses a second endpoint with the same address", async () => {
    const id = await registered();
    const { error } = await stand.endpoint("register", "--url", "http://127.0.0.1:9/webhooks/");
    expect(String(error)).toContain(`is registered already, as ${id}`);
    expect(await stand.endpoints()).toHaveLength(1);
  });

  it("says which other endpoints get the events as well, and whether they were registered from here", async () => {
    expect((await stand.endpoint("register")).out).not.toContain("another endpoint");
    const id = (await stand.endpoints())[0]?.["id"] as string;
    const theirs = await stand.sandbox.ok("POST", "/v1/webhook_endpoints", {
      url: "https://books.example.com/hook",
      enabled_events: ["*"],
    });
    const { out } = await stand.endpoint("register", "--url", "http://127.0.0.1:9/second");
    expect(out).toContain(`${id} (http://127.0.0.1:9/webhooks, registered from here)`);
    expect(out).toContain(`${theirs["id"]} (https://books.example.com/hook), which gets each event`);
    expect(out).toContain(`endpoint remove ${id}`);
  });

  it("keeps nothing open when the service refuses", async () => {
    const refused = await stand.endpoint("register", "--events", "no.such.event");
    expect(refused.error).toBeInstanceOf(UsageError);
    expect(String(refused.error)).toContain("400");
    expect(String(refused.error)).toContain("Check --url, --events");
    await registered();
  });

  it.each([
    ["--url", "hooks.example.com/webhooks"],
    ["--url", "ftp://hooks.example.com"],
    ["--url", "https://"],
    ["--events", ""],
    ["--events", "order.created,,order.refunded"],
  ])("asks the service nothing where %s is %j", async (option, value) => {
    const { error, err } = await stand.endpoint("register", option, value);
    expect(error).toMatchObject({ code: "commander.invalidArgument" });
    expect(err).toContain("such as");
    expect(await stand.endpoints()).toEqual([]);
  });

  it("makes no call when there is no key to encrypt the secret with", async () => {
    const { TALLYHOOK_ENCRYPTION_KEY: _key, ...environment } = stand.environment;
    const { error } = await runCommand(registerEndpoint, ["endpoint", "register"], {
      env: environment,
    });
    expect(String(error)).toContain("TALLYHOOK_ENCRYPTION_KEY");
    expect(await stand.endpoints()).toEqual([]);
  });
});

describe("endpoint rotate", () => {
  it("stores the new secret and ends the former one with the grace", async () => {
    const id = await registered();
    const { out, error } = await stand.endpoint("rotate", "--grace-hours", "2");
    expect(error).toBeNull();
    const [endpoint] = await stand.endpoints();
    const secrets = await stand.secrets();
    expect(secrets.map(({ value }) => value)).toEqual(stand.service.given.toReversed());
    expect(secrets[0]?.endsAt).toBeNull();
    const endsAtMs = secrets[1]?.endsAt?.getTime() ?? 0;
    expect(Math.abs(endsAtMs - Date.parse(endpoint.rotation_expires_at))).toBeLessThan(30_000);
    expect(out).toContain(`${id} has a new secret, stored as ${secrets[0]?.id}`);
    expect(out).toContain(`${secrets[1]?.id}, is kept and ends at ${endpoint.rotation_expires_at}`);
  });

  it("ends the former secret by this machine's clock when the service's was moved", async () => {
    await registered();
    await stand.sandbox.control("POST", "/clock", { advance_seconds: 90 * 86_400 });
    expect((await stand.endpoint("rotate", "--grace-hours", "1")).error).toBeNull();
    const former = (await stand.secrets())[1];
    const inMs = (former?.endsAt?.getTime() ?? 0) - Date.now();
    expect(inMs).toBeGreaterThan(3_500_000);
    expect(inMs).toBeLessThan(3_610_000);
  });

  it("refuses while a rotation is pending, and goes on after it", async () => {
    await registered();
    await stand.endpoint("rotate", "--grace-hours", "1");
    const { error } = await stand.endpoint("rotate");
    expect(String(error)).toContain("is pending until");
    expect(stand.service.given).toHaveLength(2);
    await stand.sandbox.control("POST", "/clock", { advance_seconds: 3_601 });
    expect((await stand.endpoint("rotate")).error).toBeNull();
    expect((await stand.secrets()).map(({ value }) => value)).toEqual(stand.service.given.toReversed());
  });

  it("rotates again when the repeat hides the secret", async () => {
    await registered();
    // The first rotation is one that a proxy answered: at the service none is pending.
    stand.service.faults.push("made up");
    expect((await stand.endpoint("rotate")).error).toBeNull();
    expect(new Set(stand.service.keys).size).toBe(3);
    expect((await stand.secrets())[0]?.value).toBe(stand.service.given.at(-1));
  });

  it("says what to do when the secret is hidden and another rotation refused, then recovers", async () => {
    const id = await registered();
    stand.service.faults.push("hidden");
    const lost = await stand.endpoint("rotate", "--grace-hours", "1");
    expect(String(lost.error)).toContain("was lost");
    expect(String(lost.error)).toContain(`node src/bin/tallyhook.js endpoint rotate ${id}`);
    // The former secret is all there is: it must not end.
    expect(await stand.secrets()).toMatchObject([{ endsAt: null }]);
    const { out } = await stand.endpoint("list");
    expect(out).toContain(`critical: the newest secret of ${id} was lost`);
    await stand.sandbox.control("POST", "/clock", { advance_seconds: 3_601 });
    expect((await stand.endpoint("rotate")).error).toBeNull();
    expect((await stand.secrets())[0]?.value).toBe(stand.service.given.at(-1));
    expect((await stand.endpoint("list")).out).not.toContain("lost");
  });

  it("names what is there when it is not told which", async () => {
    expect(String((await stand.endpoint("rotate")).error)).toContain("has no endpoint");
    const id = await registered();
    await stand.sandbox.ok("POST", "/v1/webhook_endpoints", {
      url: "http://127.0.0.1:9/webhooks",
      enabled_events: ["*"],
    });
    expect(String((await stand.endpoint("rotate")).error)).toContain("several endpoints. Name one of");
    expect((await stand.endpoint("rotate", id)).error).toBeNull();
    expect(String((await stand.endpoint("rotate", "nope")).error)).toContain('no endpoint "nope"');
  });
});

describe("endpoint list", () => {
  it("shows the account's endpoints, and which secret is here", async () => {
    await registered();
    await stand.sandbox.ok("POST", "/v1/webhook_endpoints", {
      url: "https://elsewhere.example.com/",
      enabled_events: ["order.*"],
    });
    const { out } = await stand.endpoint("list", "--json");
    const { endpoints, problems } = JSON.parse(out) as {
      endpoints: Record<string, unknown>[];
      problems: unknown[];
    };
    const [secret] = await stand.secrets();
    expect(endpoints).toMatchObject([
      { url: "https://elsewhere.example.com/", own: false, secret: null },
      { url: "http://127.0.0.1:9/webhooks", own: true, secret: secret?.id },
    ]);
    expect(problems).toEqual([]);
    expect(out).not.toContain(secret?.value);
  });
});

describe("endpoint test", () => {
  it("waits until the event is verified and stored", async () => {
    const url = stand.environment["DATABASE_URL"] ?? "";
    await migrateQueueSchema(url);
    const loaded = loadConfig({ ...stand.environment, PORT: "0", HOST: "127.0.0.1" });
    const runtime = createRuntime(allParts, loaded, createLog({ level: "silent", name: "test" }));
    try {
      const receiver = await runReceiver(runtime, { signingSecrets: async () => [] });
      await stand.endpoint("register", "--url", `${receiver.url}/webhooks`);
      const { out, error } = await stand.endpoint("test");
      expect(error).toBeNull();
      expect(out).toContain("arrived, verified and is stored");
    } finally {
      await runtime.close();
    }
  });

  it("says so when nothing arrives", async () => {
    await registered();
    const { error } = await stand.endpoint("test", "--wait", "1");
    expect(String(error)).toContain("did not arrive within 1 s at http://127.0.0.1:9/webhooks");
  });
});

describe("endpoint remove", () => {
  it("asks first, and removes nothing unless the answer is yes", async () => {
    const id = await registered();
    const unasked = await stand.endpoint("remove", id);
    expect(unasked.error).toBeInstanceOf(UsageError);
    expect(String(unasked.error)).toContain("--yes");
    const no = await stand.typing("n\r", "remove", id);
    expect(no.error).toBeInstanceOf(UsageError);
    expect(no.err).toContain(
      `Remove ${id} (http://127.0.0.1:9/webhooks, enabled) at the service, so that no event is sent to it?`,
    );
    expect(await stand.endpoints()).toHaveLength(1);
    const yes = await stand.typing("y\r", "remove", id);
    expect(yes.error).toBeNull();
    expect(yes.out).toContain("was removed");
    expect(await stand.endpoints()).toEqual([]);
  });

  it("removes it, keeps its secret, and does not mind that it is gone", async () => {
    const id = await registered();
    await stand.sandbox.ok("DELETE", `/v1/webhook_endpoints/${id}`);
    const { out, error } = await stand.endpoint("remove", id, "--yes");
    expect(error).toBeNull();
    expect(out).toContain("was gone already");
    expect(out).toContain("node src/bin/tallyhook.js secrets retire db:");
    expect(await stand.secrets()).toMatchObject([{ endsAt: null }]);
    const unknown = await stand.endpoint("remove", id, "--yes");
    expect(unknown.error).toBeInstanceOf(UsageError);
    expect(String(unknown.error)).toContain(`The account has no endpoint "${id}".`);
    const again = await registered();
    expect((await stand.endpoint("remove", again, "--yes")).out).toContain("was removed");
    expect(await stand.endpoints()).toEqual([]);
  });
});

it("who registered, rotated and removed the endpoint is in the record, without a secret", async () => {
  const id = await registered();
  expect((await stand.endpoint("rotate", "--by", "Ann Lee")).error).toBeNull();
  expect((await stand.endpoint("remove", id, "--yes")).error).toBeNull();
  const acts = await readAudit(stand.db, { subject: { kind: "endpoint", id }, limit: 10 });
  expect(acts).toMatchObject([
    { action: "endpoint.removed", actor: "tester" },
    { action: "endpoint.rotated", actor: "Ann Lee" },
    { action: "endpoint.registered", actor: "tester" },
  ]);
  for (const value of stand.service.given) expect(JSON.stringify(acts)).not.toContain(value);
});
