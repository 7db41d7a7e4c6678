import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { withoutPersonalData } from "../../../src/mirror/erasure/personal-data.ts";
import { redactBody } from "../../../src/mirror/erasure/redact-body.ts";

describe("an object without personal data", () => {
  it("keeps ids, amounts, statuses, times, brands and countries", () => {
    const kept = {
      id: "o-1",
      customer_id: "c-1",
      total: 1_000,
      status: "succeeded",
      created_at: "2026-01-01T00:00:00Z",
      payment_method: { id: "card-1", card_brand: "visa" },
      items: [{ product_id: "p-1", name: "Box", quantity: 2 }],
      failure_code: null,
    };
    expect(withoutPersonalData(kept)).toEqual(kept);
  });

  it("loses what tells of a person, at any depth and under whatever name in an address", () => {
    const order = {
      description: "for Jane",
      metadata: { anything: ["Jane"] },
      customer: { email: "jane@example.com", payment_methods: [{ card: { last4: "4242" } }] },
      shipping_address: { id: "a-1", recipient: "Jane", state: "CO", country: "US", phone: null },
    };
    expect(withoutPersonalData(order)).toEqual({
      description: "[redacted]",
      metadata: {},
      customer: { email: "[redacted]", payment_methods: [{ card: { last4: "[redacted]" } }] },
      shipping_address: {
        id: "a-1",
        recipient: "[redacted]",
        state: "[redacted]",
        country: "US",
        phone: null,
      },
    });
  });

  it("has lost all of it at once", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const once = withoutPersonalData(value);
        expect(withoutPersonalData(once)).toEqual(once);
      }),
    );
  });
});

describe("a stored body", () => {
  it("stays JSON that can be replayed", () => {
    const body = { id: "evt-1", data: { object: { id: "c-1", email: "jane@example.com" } } };
    const bytes = redactBody(Buffer.from(JSON.stringify(body)));
    expect(JSON.parse(bytes?.toString("utf8") ?? "")).toEqual({
      id: "evt-1",
      data: { object: { id: "c-1", email: "[redacted]" } },
    });
  });

  it.each([["no JSON, Jane"], ['{"email":']])("is emptied where it is none: %s", (text) => {
    expect(redactBody(Buffer.from(text))).toBeNull();
    expect(redactBody(Buffer.from([0xff, 0xfe]))).toBeNull();
  });
});
