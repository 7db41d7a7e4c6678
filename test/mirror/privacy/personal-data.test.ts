import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { mirrorResources } from "../../../src/core/mirror/resources.ts";
import { allColumns, namedGroups } from "../../../src/core/mirror/resources/resource.ts";
import {
  classifiedKeys,
  withoutPersonalData,
  withoutPersonalField,
} from "../../../src/core/mirror/privacy/personal-data.ts";
import { parsedEventOf, redactedEvent } from "../../../src/core/mirror/privacy/redact-events.ts";
import { type EnvelopePaths, defaultEnvelopePaths } from "../../../src/core/contract/event-envelope.ts";
import { customerSchema } from "../../../src/core/contract/resources/customers.ts";
import { orderSchema } from "../../../src/core/contract/resources/orders.ts";
import { planSchema } from "../../../src/core/contract/resources/plans.ts";
import { subscriptionSchema } from "../../../src/core/contract/resources/subscriptions.ts";
import { transactionSchema } from "../../../src/core/contract/resources/transactions.ts";

describe("the list of what stays", () => {
  it("knows every field of the interface, so that a new one is decided on", () => {
    const schemas = [customerSchema, orderSchema, subscriptionSchema, transactionSchema, planSchema];
    const fields = new Set(schemas.flatMap((schema) => keysOf(z.toJSONSchema(schema, jsonOptions))));
    expect(fields.size).toBeGreaterThan(80);
    expect([...fields].filter((key) => !classifiedKeys.has(key))).toEqual([]);
  });

  it("knows every column of the mirror's groups", () => {
    const columns = mirrorResources.flatMap((table) => [
      ...namedGroups(table).flatMap(({ columns: own }) => Object.keys(own)),
      ...Object.keys(table.shared?.columns ?? {}),
      ...Object.keys(table.computed ?? {}),
    ]);
    expect(columns.filter((column) => !classifiedKeys.has(column))).toEqual([]);
  });

  it("leaves no column that findings hide as personal", () => {
    const personal = mirrorResources.flatMap((resource) =>
      Object.entries(allColumns(resource)).flatMap(([name, { holds }]) => (holds === "personal" ? [name] : [])),
    );
    expect(personal).toContain("email");
    const left = personal.filter((name) => withoutPersonalField(name, "jane") === "jane");
    expect(left).toEqual([]);
  });
});

const jsonOptions = { unrepresentable: "any", io: "input" } as const;

function keysOf(schema: unknown): string[] {
  if (typeof schema !== "object" || schema === null) return [];
  const { properties, ...rest } = schema as Record<string, unknown>;
  const own = typeof properties === "object" && properties !== null ? properties : {};
  return [...Object.keys(own), ...[...Object.values(own), ...Object.values(rest)].flatMap(keysOf)];
}

describe("an object without personal data", () => {
  it("keeps ids, codes, amounts, times, brands and countries", () => {
    const kept = {
      id: "o-1",
      customer_id: "c-1",
      total: 1_000,
      status: "partially_refunded",
      type: "order.payment.failed",
      order_number: "ZXYQF2JM",
      coupon_code: "SPRING-2026",
      billing_cycle: { interval: "month", anchor_day: "signup_date" },
      processor_response: { response_code: "300", avs_result: "Y", cvv_result: "M" },
      currency: "usd",
      created_at: "2026-01-01T00:00:00Z",
      start_date: "2026-01-01",
      payment_method: { id: "card-1", card_brand: "American Express" },
      items: [{ product_id: "p-1", quantity: 2, price: 500 }],
      shipping_address: { id: "a-1", country: "US" },
      product_ids: ["p-1", "p-2"],
      failure_code: null,
    };
    expect(withoutPersonalData(kept)).toEqual(kept);
  });

  it("loses all else at any depth, with the keys that nobody knows", () => {
    const order = {
      description: "for Jane",
      metadata: { anything: ["Jane"] },
      failure_reason: "Jane has no money",
      tax_id: "J-1",
      "Jane Doe": 1,
      ip_address: "192.0.2.1",
      birth_year: 1_980,
      vip: true,
      items: [{ product_id: "p-1", name: "Jane's box", engraving: "Jane" }, "Jane", 5],
      customer: { email: "jane@example.com", payment_methods: [{ card: { last4: "4242" } }] },
      shipping_address: { id: "a-1", recipient: "Jane", state: "CO", country: "US", phone: null },
      plan: "Jane's plan",
    };
    expect(withoutPersonalData(order)).toEqual({
      description: "[redacted]",
      metadata: {},
      failure_reason: "[redacted]",
      items: [{ product_id: "p-1", name: "[redacted]" }, "[redacted]", "[redacted]"],
      customer: { email: "[redacted]", payment_methods: [{ card: { last4: "[redacted]" } }] },
      shipping_address: { id: "a-1", state: "[redacted]", country: "US", phone: null },
      plan: "[redacted]",
    });
  });

  it.each([
    ["status", "jane@example.com"],
    ["currency", "Jane Doe (Smalltown)"],
    ["country", "at Jane's"],
    ["created_at", "when Jane came"],
    ["total", "Jane"],
    ["deleted", "by Jane"],
    ["failure_code", "a text of more than forty characters about Jane"],
    ["product_ids", ["p-1", "p\n2"]],
    ["status", "Jane Doe"],
    ["status", "Jane"],
    ["order_number", "Jane Doe"],
    ["order_number", "Jane@example"],
    ["coupon_code", "for Jane"],
    ["response_code", "Jane"],
    ["avs_result", "Jane D"],
    ["card_brand", "Jane Doe"],
    ["currency", "Jane"],
    ["payment_method_id", "the card of Jane"],
    ["product_ids", ["p-1", "Jane's box"]],
    ["card", 4242],
    ["customer", 15550100],
    ["country", 15550100],
  ])("loses what has not the form of its key: %s", (key, value) => {
    expect(JSON.stringify(withoutPersonalData({ [key]: value }))).toContain("[redacted]");
    expect(JSON.stringify(withoutPersonalData({ [key]: value }))).not.toContain("Jane");
  });

  it("has lost all of it at once", () => {
    const json = fc.jsonValue({ stringUnit: fc.constantFrom("a", "@", " ", "1", "-", ".", "\n") });
    const key = fc.constantFrom("id", "status", "total", "customer", "items", "metadata", "email", "x");
    fc.assert(
      fc.property(fc.dictionary(key, json), (value) => {
        const once = withoutPersonalData(value);
        expect(withoutPersonalData(once)).toEqual(once);
      }),
    );
  });

  it("is made of what is nested beyond measure", () => {
    let deep: unknown = "Jane";
    for (let n = 0; n < 5_000; n++) deep = n % 2 === 0 ? [deep] : { data: deep };
    expect(JSON.stringify(withoutPersonalData(deep))).not.toContain("Jane");
  });
});

describe("the body of an event", () => {
  const people = {
    customers: new Set(["c-1"]),
    objects: new Set(["o-1"]),
    contacts: new Set(["jane@example.com", "+15550100"]),
  };
  const left = (body: unknown, places: EnvelopePaths = defaultEnvelopePaths): unknown => {
    const raw = Buffer.from(JSON.stringify(body));
    const kept = redactedEvent(places, parsedEventOf(raw), people);
    return kept === null ? "untouched" : JSON.parse(kept.raw?.toString("utf8") ?? "null");
  };
  const event = (object: unknown, type = "order.created", more = {}): object => ({
    id: "evt-1",
    type,
    created_at: "2026-01-01T00:00:00Z",
    data: { object },
    ...more,
  });

  it("stays one that can be replayed", () => {
    const customer = { id: "c-1", email: "jane@example.com", created_at: "2026-01-01T00:00:00Z" };
    const more = {
      api_version: "2026-01-01",
      ip: "192.0.2.1",
      previous_attributes: { email: "j" },
    };
    expect(left(event(customer, "customer.updated", more))).toEqual({
      ...event({ ...customer, email: "[redacted]" }, "customer.updated"),
      api_version: "2026-01-01",
    });
  });

  it("stays one that can be replayed where the envelope is another", () => {
    const places = {
      id: "meta.uid",
      type: "meta.name",
      createdAt: "meta.when",
      apiVersion: "meta.version",
      object: "payload.entity",
    };
    const meta = { uid: "evt-1", name: "order.created", when: "2026-01-01T00:00:00Z", by: "Jane" };
    const body = { meta, payload: { entity: { id: "o-9", customer_id: "c-1", note: "Jane" } } };
    expect(left(body, places)).toEqual({
      meta: { uid: "evt-1", name: "order.created", when: "2026-01-01T00:00:00Z" },
      payload: { entity: { id: "o-9", customer_id: "c-1" } },
    });
  });

  it.each<[string, object]>([
    ["its customer", event({ id: "o-7", customer_id: "c-1", note: "Jane" })],
    ["its customer, embedded", event({ id: "o-7", customer: { id: "c-1", name: "Jane" } })],
    ["its customer as a text", event({ id: "o-7", customer: "c-1", note: "Jane" })],
    ["the one customer that it names at all", event({ bill: { customer_id: "c-1" }, to: "Jane" })],
    ["its object", event({ order_id: "o-1", note: "Jane" }, "refund.created")],
    ["an e-mail address", event({ to: "Jane Doe <JANE@example.com>" }, "mail.sent")],
    ["a phone number", event({ to: "+1 (555) 0100", text: "Dear Jane" }, "sms.sent")],
  ])("is theirs by %s", (_, body) => {
    expect(JSON.stringify(left(body))).not.toMatch(/jane/i);
  });

  it.each<[string, object]>([
    ["names another customer", event({ id: "o-1", customer_id: "c-2", note: "Jane" })],
    ["names another customer with their address", event({ customer_id: "c-2", email: "jane@example.com" })],
    ["is of another customer by its own id", event({ id: "c-2", email: "jane@example.com" }, "customer.created")],
    ["names nobody and nothing of theirs", event({ id: "x-1", to: "joe@example.com" }, "mail.sent")],
  ])("is not theirs where it %s", (_, body) => {
    expect(left(body)).toBe("untouched");
  });

  it("loses of an event about somebody else what it embeds of theirs", () => {
    const entry = { customer_id: "c-1", amount: 5, note: "Jane" };
    const order = { id: "o-1", customer_id: "c-2", note: "Joe", transactions: [entry] };
    expect(left(event(order))).toEqual(event({ ...order, transactions: [{ customer_id: "c-1", amount: 5 }] }));
  });

  // Of a key that is said twice the parser keeps the last: what stood under the first is in the bytes alone.
  it.each([
    '{"id":"e","data":{"object":{"id":"o-7","customer_id":"c-1","status":"Jane","status":"paid"}}}',
    '{"id":"e","data":{"object":{"email":"j@x.example"},"object":{"customer_id":"c-1"},"by":"Jane"}}',
    '{"id":"e","customer":{"id":"c-1","name":"Jane"},"customer":{"id":"c-2"}}',
    '{"id":"e","to":"jane@example.com","to":"joe@example.com"}',
  ])("loses what is theirs under a key that is said again: %s", (text) => {
    const of = (raw: Buffer) => redactedEvent(defaultEnvelopePaths, parsedEventOf(raw), people);
    const kept = of(Buffer.from(text))?.raw?.toString("utf8") ?? "nothing";
    expect(kept).not.toMatch(/jane|j@x/i);
    expect(JSON.parse(kept)).toMatchObject({ id: "e" });
    expect(of(Buffer.from(kept))).toBeNull();
  });

  it("loses what is nested beyond measure as well", () => {
    const deep = (inner: string): string => `${'{"data":'.repeat(20_000)}${inner}${"}".repeat(20_000)}`;
    for (const text of [
      `{"id":"e","customer_id":"c-1","data":${deep('"Jane"')}}`,
      `{"id":"e","note":"Jane, c-1","note":"x","customer_id":"c-2","data":${deep('"Jane"')}}`,
    ]) {
      const raw = Buffer.from(text);
      const kept = redactedEvent(defaultEnvelopePaths, parsedEventOf(raw), people);
      expect(JSON.parse(kept?.raw?.toString("utf8") ?? "null")).toMatchObject({ id: "e" });
      expect(kept?.raw?.toString("utf8")).not.toContain("Jane");
    }
  });

  it("is emptied where it is no JSON and names them, and only then", () => {
    const of = (text: string): unknown => redactedEvent(defaultEnvelopePaths, parsedEventOf(Buffer.from(text)), people);
    expect(of("Jane is c-1, we think")).toEqual({ raw: null, body: undefined });
    expect(of('{"email": "Jane@Example.com"')).toEqual({ raw: null, body: undefined });
    expect(of("somebody is c-12")).toBeNull();
  });
});
