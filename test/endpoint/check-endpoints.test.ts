import { describe, expect, it } from "vitest";
import { type EndpointFacts, checkEndpoints } from "../../src/parts/endpoint/inspect-endpoint.ts";
import { type WebhookEndpoint, coversEvent } from "../../src/core/contract/resources/webhook-endpoints.ts";

const now = new Date("2026-03-01T12:00:00Z");

const endpoint = (fields: Partial<WebhookEndpoint> = {}): WebhookEndpoint => ({
  id: "we-1",
  url: "https://hooks.example.com/webhooks",
  enabled_events: ["*"],
  status: "enabled",
  has_pending_rotation: false,
  rotation_expires_at: null,
  api_version: "2025-09-01",
  api_version_deprecated: false,
  api_version_sunset: null,
  created_at: "2026-01-01T00:00:00Z",
  ...fields,
});

const classify = (fields: Partial<EndpointFacts> = {}): [string, string][] =>
  checkEndpoints({
    endpoints: [endpoint()],
    url: "https://hooks.example.com/webhooks",
    known: [],
    openCall: null,
    lostSecrets: [],
    now,
    ...fields,
  }).map(({ code, severity }) => [code, severity]);

const checkOne = (fields: Partial<WebhookEndpoint>, facts: Partial<EndpointFacts> = {}) =>
  classify({ endpoints: [endpoint(fields)], ...facts });

describe("the endpoint watch", () => {
  it("finds nothing wrong with an endpoint that does what it should", () => {
    expect(classify()).toEqual([]);
  });

  it("misses the endpoint, and minds two of them", () => {
    expect(classify({ endpoints: [] })).toEqual([["not_registered", "critical"]]);
    const two = [endpoint(), endpoint({ id: "we-2" })];
    expect(classify({ endpoints: two })).toEqual([["registered_twice", "warning"]]);
    const one = [endpoint(), endpoint({ id: "we-2", status: "disabled" })];
    expect(classify({ endpoints: one })).toEqual([["disabled", "critical"]]);
  });

  it("minds a disabled endpoint, and a status that nobody knows", () => {
    expect(checkOne({ status: "disabled" })).toEqual([["disabled", "critical"]]);
    expect(checkOne({ status: "suspended" })).toEqual([["disabled", "critical"]]);
  });

  it("minds that an event is not asked for", () => {
    const needed = ["order.*", "subscription.*", "customer.created"];
    expect(checkOne({ enabled_events: needed })).toEqual([]);
    expect(checkOne({ enabled_events: ["order.*", "customer.*"] })).toEqual([["not_subscribed", "high"]]);
  });

  it.each([
    ["2026-02-28", "critical"],
    ["2026-04-15", "high"],
  ])("minds a version that ends on %s", (sunset, severity) => {
    expect(checkOne({ api_version_sunset: sunset })).toEqual([["version_sunset", severity]]);
  });

  it("warns of a deprecated version, and lets one be that ends in a year", () => {
    expect(checkOne({ api_version_deprecated: true })).toEqual([["version_sunset", "warning"]]);
    expect(checkOne({ api_version_sunset: "2027-03-01" })).toEqual([]);
  });

  it("minds a rotation that was made elsewhere, and not its own", () => {
    const pending = { has_pending_rotation: true, rotation_expires_at: "2026-03-02T12:00:00.000Z" };
    expect(checkOne(pending)).toEqual([["unknown_rotation", "high"]]);
    const known = [
      {
        id: "we-1",
        url: "",
        secretId: "db:1",
        rotationEndsAt: new Date(pending.rotation_expires_at),
      },
    ];
    expect(checkOne(pending, { known })).toEqual([]);
    const later = { ...pending, rotation_expires_at: "2026-03-09T12:00:00.000Z" };
    expect(checkOne(later, { known })).toEqual([["unknown_rotation", "high"]]);
  });

  it("minds a secret that was lost and a call that was not finished", () => {
    expect(classify({ lostSecrets: ["we-1"] })).toEqual([["secret_lost", "critical"]]);
    const call = { idempotencyKey: "", kind: "rotate", endpointId: "we-1", body: {} } as const;
    const begun = (minutesAgo: number) => ({
      openCall: { ...call, createdAt: new Date(now.getTime() - minutesAgo * 60_000) },
    });
    expect(classify(begun(1))).toEqual([]);
    expect(classify(begun(6))).toEqual([["call_unfinished", "high"]]);
  });
});

describe("an endpoint's patterns", () => {
  it.each([
    [["*"], "order.created", true],
    [["subscription.*"], "subscription.billing.updated", true],
    [["order.*"], "orders.created", false],
    [["order.created"], "order.created", true],
    [["order.created"], "order.created.twice", false],
    [[], "order.created", false],
  ])("%j covers %s: %s", (patterns, type, covered) => {
    expect(coversEvent(patterns, type)).toBe(covered);
  });
});
