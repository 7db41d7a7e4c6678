import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { type Called, type TestSandbox, expectRefusal, liveKey, startTestSandbox } from "./harness.ts";

const retired = "2024-03-01";
const deprecated = "2024-11-15";
const latest = "2025-09-01";

let sandbox: TestSandbox;
beforeEach(async () => {
  await sandbox?.close();
  sandbox = await startTestSandbox();
});
afterAll(() => sandbox.close());

const get = (version: string, header = "SVC-Version"): Promise<Called> =>
  sandbox.call("GET", "/v1/account", undefined, { headers: { [header]: version } });
const upgrade = (body: object, idempotency: string | null = null): Promise<Called> =>
  sandbox.call("POST", "/v1/account/api_version", body, { idempotency });
/** As an account is that was made when the version was new. */
const pinnedTo = (api_version: string | null) => sandbox.control("PUT", "/account", { api_version });
const account = () => sandbox.ok("GET", "/v1/account");

describe("the version of a request", () => {
  test("the header names it, in any letter case, and changes nothing else", async () => {
    for (const header of ["SVC-Version", "svc-version", "Svc-VERSION"]) {
      expect((await get(deprecated, header)).status).toBe(200);
    }
    expect(await account()).toEqual({ api_version: null, latest_api_version: latest });
  });

  test("an unknown or malformed one is refused, whatever the endpoint", async () => {
    for (const version of ["2031-01-01", "latest", "2025-9-1", "1"]) {
      expectRefusal(await get(version), 400, "invalid_api_version", "SVC-Version");
    }
    const order = await sandbox.call("POST", "/v1/orders", {}, { headers: { "SVC-Version": "x" } });
    expectRefusal(order, 400, "invalid_api_version");
  });

  test("a retired one is refused", async () => {
    expectRefusal(await get(retired), 400, "api_version_sunset", "SVC-Version");
  });

  test("without the header it is the account's, else the latest; answers say which", async () => {
    const shown = async (header?: string) =>
      (header === undefined ? await sandbox.call("GET", "/v1/account") : await get(header)).headers.get("svc-version");
    expect(await shown()).toBe(latest);
    expect(await shown(deprecated)).toBe(deprecated);
    await pinnedTo(deprecated);
    expect(await shown()).toBe(deprecated);
    expect(await shown(latest)).toBe(latest);
  });
});

describe("the account's version", () => {
  test("is null when nothing is pinned", async () => {
    expect(await account()).toEqual({ api_version: null, latest_api_version: latest });
  });

  test("an upgrade needs a version in its form", async () => {
    expectRefusal(await upgrade({}), 400, "required_field", "version");
    for (const version of ["soon", "2025-9-1", "20250901"]) {
      expectRefusal(await upgrade({ version }), 400, "invalid_format", "version");
    }
    expectRefusal(await upgrade({ version: 20250901 }), 400, "invalid_value", "version");
  });

  test("an unknown or retired version is refused", async () => {
    expectRefusal(await upgrade({ version: "2031-01-01" }), 400, "invalid_api_version", "version");
    expectRefusal(await upgrade({ version: retired }), 400, "api_version_sunset", "version");
    expect((await account()).api_version).toBeNull();
  });

  test("an upgrade pins it and tells what was before", async () => {
    expect((await upgrade({ version: latest })).body).toEqual({
      api_version: latest,
      previous_version: null,
      latest_api_version: latest,
    });
    expect((await account()).api_version).toBe(latest);
    await pinnedTo(deprecated);
    expect((await account()).api_version).toBe(deprecated);
    expect((await upgrade({ version: latest })).body.previous_version).toBe(deprecated);
    expect((await account()).api_version).toBe(latest);
  });

  test("there is no way back; the pinned one again changes nothing", async () => {
    await upgrade({ version: latest });
    const back = await upgrade({ version: deprecated });
    expectRefusal(back, 400, "invalid_api_version", "version");
    expect((await account()).api_version).toBe(latest);
    expect(await upgrade({ version: latest })).toMatchObject({
      status: 200,
      body: { api_version: latest, previous_version: latest },
    });
  });

  test("without a pin the latest is in use, so that an older one is a way back", async () => {
    const back = await upgrade({ version: deprecated });
    expectRefusal(back, 400, "invalid_api_version", "version");
    expect((await account()).api_version).toBeNull();
    expectRefusal(await sandbox.tryControl("PUT", "/account", { api_version: retired }), 400, "api_version_sunset");
  });

  test("the idempotency key is optional and honoured", async () => {
    await pinnedTo(deprecated);
    const key = crypto.randomUUID();
    const first = await upgrade({ version: latest }, key);
    expect((await upgrade({ version: latest }, key)).body).toEqual(first.body);
    const conflict = await upgrade({ version: deprecated }, key);
    expectRefusal(conflict, 409, "idempotency_key_conflict");
  });

  test("is that of its environment: the demo company is not the live one", async () => {
    await upgrade({ version: latest });
    const live = await sandbox.ok("GET", "/v1/account", undefined, { key: liveKey });
    expect(live.api_version).toBeNull();
  });
});

describe("webhook endpoints", () => {
  const register = (more: object = {}) =>
    sandbox.ok("POST", "/v1/webhook_endpoints", {
      url: "https://example.test/hooks",
      enabled_events: ["*"],
      ...more,
    });

  test("keep their version when the account is pinned", async () => {
    const endpoint = await register({ api_version: deprecated });
    const unpinned = await register();
    await upgrade({ version: latest });
    for (const before of [endpoint, unpinned]) {
      const after = await sandbox.ok("GET", `/v1/webhook_endpoints/${before.id}`);
      expect(after.api_version).toBe(before.api_version);
      expect(after.updated_at).toBe(before.updated_at);
    }
  });

  test("show when they were pinned, and what the table says of their version", async () => {
    await sandbox.control("POST", "/clock", { now: "2026-03-01T12:00:00Z" });
    expect(await register({ api_version: deprecated })).toMatchObject({
      api_version: deprecated,
      api_version_pinned_at: "2026-03-01T12:00:00.000Z",
      api_version_deprecated: true,
      api_version_sunset: "2027-11-15",
    });
    expect(await register()).toMatchObject({
      api_version: latest,
      api_version_pinned_at: null,
      api_version_deprecated: false,
      api_version_sunset: null,
    });
  });

  test("are refused an unknown version", async () => {
    const body = { url: "https://example.test/hooks", enabled_events: ["*"] };
    const refused = await sandbox.call("POST", "/v1/webhook_endpoints", {
      ...body,
      api_version: "2031-01-01",
    });
    expectRefusal(refused, 400, "invalid_api_version", "api_version");
  });
});
