import { describe, expect, it } from "vitest";
import type { z } from "zod";
import { customerSchema } from "../../../src/core/contract/resources/customers.ts";
import { missingKeys } from "../../../src/core/contract/wire-types.ts";
import { orderSchema } from "../../../src/core/contract/resources/orders.ts";
import { paymentMethodSchema } from "../../../src/core/contract/resources/payment-methods.ts";
import { planSchema } from "../../../src/core/contract/resources/plans.ts";
import { productSchema } from "../../../src/core/contract/resources/products.ts";
import { subscriptionSchema } from "../../../src/core/contract/resources/subscriptions.ts";
import { transactionSchema } from "../../../src/core/contract/resources/transactions.ts";
import { webhookEndpointSchema } from "../../../src/core/contract/resources/webhook-endpoints.ts";
import {
  customer,
  order,
  paymentMethod,
  plan,
  product,
  subscription,
  transaction,
  webhookEndpoint,
} from "./samples.ts";

const resources: [name: string, schema: z.ZodObject, sample: Record<string, unknown>][] = [
  ["order", orderSchema, order],
  ["transaction", transactionSchema, transaction],
  ["subscription", subscriptionSchema, subscription],
  ["customer", customerSchema, customer],
  ["payment method", paymentMethodSchema, paymentMethod],
  ["plan", planSchema, plan],
  ["product", productSchema, product],
  ["webhook endpoint", webhookEndpointSchema, webhookEndpoint],
];

/** Parses as the edge does: from JSON text, so that `__proto__` is an own key. */
function fromJson(text: string): Record<string, unknown> {
  return JSON.parse(text) as Record<string, unknown>;
}

describe.each(resources)("%s", (_name, schema, sample) => {
  it("is read back exactly as it was sent", () => {
    expect(schema.parse(fromJson(JSON.stringify(sample)))).toEqual(sample);
  });

  it("keeps unknown fields at any depth", () => {
    const extended = { ...sample, brand_new: { nested: [1, "two", null] } };
    expect(schema.parse(extended)).toEqual(extended);
  });

  it("is not harmed by __proto__ and constructor keys", () => {
    const text = JSON.stringify(sample).replace(
      /\}$/,
      `,"constructor":{"prototype":{"polluted":true}},"__proto__":{"polluted":true,"id":"forged"}}`,
    );
    const parsed = schema.parse(fromJson(text));
    expect(Object.getPrototypeOf(parsed)).toBe(Object.prototype);
    expect(parsed["id"]).toBe(sample["id"]);
    expect("polluted" in {}).toBe(false);
    expect("polluted" in parsed).toBe(false);
  });

  it("is thin, not unreadable, when only its id is there", () => {
    const missing = missingKeys(schema, { id: sample["id"] });
    expect(missing).not.toContain("id");
    expect(missingKeys(schema, sample)).toEqual([]);
    expect(schema.safeParse({ id: sample["id"] }).success).toBe(missing.length === 0);
  });

  it("can be parsed once no required key is missing and every other one is absent", () => {
    const required = missingKeys(schema, {});
    const bare = Object.fromEntries(required.map((key) => [key, sample[key]]));
    expect(schema.safeParse(bare).success).toBe(true);
  });

  it("refuses an id that cannot be a key", () => {
    const accepts = (id: unknown): boolean => schema.safeParse({ ...sample, id }).success;
    const bad = ["", "a\u0000b", "line\nbreak", "\ud800", "x".repeat(256), 7, null, {}];
    expect(bad.filter(accepts)).toEqual([]);
    expect(accepts("😀".repeat(255))).toBe(true);
  });

  it("refuses what is no object", () => {
    for (const value of [null, [], "text", 7, undefined]) {
      expect(schema.safeParse(value).success).toBe(false);
    }
  });
});

describe("money", () => {
  const unusable = [1.5, "100", 2 ** 53, -(2 ** 53), Number.NaN, Infinity, true, {}];
  const moneyFields: [z.ZodObject, Record<string, unknown>, string][] = [
    [orderSchema, order, "subtotal"],
    [orderSchema, order, "discount_amount"],
    [orderSchema, order, "total"],
    [transactionSchema, transaction, "amount"],
    [planSchema, plan, "amount"],
    [planSchema, plan, "one_time_amount"],
  ];

  it.each(moneyFields)("%# is refused unless it is a safe integer", (schema, sample, field) => {
    const accepts = (amount: unknown): boolean => schema.safeParse({ ...sample, [field]: amount }).success;
    const usable = [0, 1, Number.MAX_SAFE_INTEGER];
    expect([...unusable, ...usable].filter(accepts)).toEqual(usable);
  });

  it.each(moneyFields)("%# is refused below zero", (schema, sample, field) => {
    expect(schema.safeParse({ ...sample, [field]: -1 }).success).toBe(false);
  });

  it("may be below zero on a refund, whose sign the spec does not show", () => {
    const refund = { ...transaction, type: "refund", amount: -500 };
    expect(transactionSchema.parse(refund)).toEqual(refund);
    const inline = { ...order, transactions: [{ id: "t", type: "refund", amount: -500 }] };
    expect(orderSchema.parse(inline)).toEqual(inline);
  });

  it("is checked inside an order too", () => {
    const acceptsInline = (amount: unknown): boolean =>
      orderSchema.safeParse({ ...order, transactions: [{ id: "t", type: "sale", amount }] }).success;
    const acceptsDiscount = (discount_amount: unknown): boolean =>
      orderSchema.safeParse({ ...order, applied_coupon: { discount_amount } }).success;
    expect([...unusable, -1, 5].filter(acceptsInline)).toEqual([5]);
    expect([...unusable, -1, 5].filter(acceptsDiscount)).toEqual([5]);
  });
});

describe("open enums", () => {
  it("keep values nobody has heard of", () => {
    const strange = {
      ...order,
      status: "on_the_moon",
      currency: "xtz",
      failure_code: "cosmic_rays",
      transactions: [{ type: "teleport", status: "in_transit" }],
    };
    expect(orderSchema.parse(strange)).toEqual(strange);
    expect(subscriptionSchema.parse({ ...subscription, status: "dormant" }).status).toBe("dormant");
  });

  it("refuse what is not text", () => {
    for (const status of [null, 1, {}, []]) {
      expect(orderSchema.safeParse({ ...order, status }).success).toBe(false);
    }
  });
});

describe("times", () => {
  it("are refused when they are no instant", () => {
    for (const updated_at of ["yesterday", "2026-02-30T00:00:00Z", "2026-01-01", 1700000000]) {
      expect(orderSchema.safeParse({ ...order, updated_at }).success).toBe(false);
    }
  });

  it("keep their spelling", () => {
    const written = "2026-01-01T01:00:00.123456789+01:00";
    expect(orderSchema.parse({ ...order, updated_at: written }).updated_at).toBe(written);
  });
});

describe("missing keys", () => {
  it("tells a missing key from a null and from an inherited one", () => {
    expect(missingKeys(orderSchema, { ...order, status: null })).toEqual([]);
    const inherited = Object.create({ status: "succeeded" }) as Record<string, unknown>;
    expect(missingKeys(orderSchema, Object.assign(inherited, { id: "o" }))).toContain("status");
  });

  it("leaves a dunning key that was not sent absent", () => {
    expect(Object.hasOwn(orderSchema.parse(order), "next_retry_at")).toBe(false);
    expect(orderSchema.parse({ ...order, next_retry_at: null }).next_retry_at).toBeNull();
  });
});
