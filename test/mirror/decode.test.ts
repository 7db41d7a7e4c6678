import { describe, expect, test } from "vitest";
import { decode } from "../../src/core/mirror/resources.ts";
import type { GroupState, Resource } from "../../src/core/mirror/snapshot.ts";
import {
  at,
  sampleCustomer,
  sampleEntry,
  sampleOrder,
  sampleSubscription,
  sampleTransaction,
  seen,
  shown,
} from "./samples.ts";

const samples = {
  order: sampleOrder,
  transaction: sampleTransaction,
  subscription: sampleSubscription,
  customer: sampleCustomer,
};
const statesOf = (resource: Resource, object: Record<string, unknown>): GroupState[] => {
  const decoded = decode(shown(resource, object));
  if (!decoded.ok) throw new Error(JSON.stringify(decoded));
  return decoded.states;
};
const groupsOf = (object: Record<string, unknown>) => statesOf("order", object).map(({ group }) => group);

describe("money that cannot be read makes an object dead, with a reason that names the field", () => {
  const bad = [12.5, -1, "1000", 2 ** 53, null, {}, true, Number.POSITIVE_INFINITY];
  test.each(["subtotal", "discount_amount", "total"].flatMap((field) => bad.map((value) => [field, value])))(
    "an order's %s of %j",
    (field, value) => {
      const decoded = decode(shown("order", sampleOrder({ [String(field)]: value })));
      expect(decoded).toMatchObject({ ok: false, partial: false });
      expect(decoded).toHaveProperty("reason", expect.stringMatching(`^${String(field)}: `));
    },
  );
  test.each(bad)("a transaction's amount of %j", (amount) => {
    const decoded = decode(shown("transaction", sampleTransaction({ amount })));
    expect(decoded).toHaveProperty("reason", expect.stringMatching(/^amount: /));
  });
  test.each(bad.filter((value) => value !== null))("a plan's amount of %j", (amount) => {
    const plan = { id: "plan-1", amount };
    const decoded = decode(shown("subscription", sampleSubscription({ plan })));
    expect(decoded).toHaveProperty("reason", expect.stringMatching(/^plan\.amount: /));
  });
  test("but a refund's may be negative, since its sign is not shown", () => {
    expect(statesOf("transaction", sampleTransaction({ type: "refund", amount: -5 }))).toHaveLength(1);
  });
});

describe("an id or a version that cannot be read makes an object dead", () => {
  test.each([7, "", "a\u0000b", "a\ud800", "x".repeat(256), null, {}, ["a"]])("an id of %j", (id) => {
    expect(decode(shown("order", sampleOrder({ id })))).toMatchObject({
      ok: false,
      partial: false,
      reason: expect.stringMatching(/^id: /) as string,
    });
  });
  test.each(["yesterday", "2025-02-30T00:00:00Z", "2025-03-01", 1_740_000_000])("an updated_at of %j", (updated_at) => {
    expect(decode(shown("order", sampleOrder({ updated_at })))).toMatchObject({
      ok: false,
      partial: false,
      reason: expect.stringMatching(/^updated_at: /) as string,
    });
  });
  test("and a reason never shows the value", () => {
    const decoded = decode(shown("customer", sampleCustomer({ id: 4_111_111_111 })));
    expect(JSON.stringify(decoded)).not.toContain("4111");
  });
  test("and what is nested too deeply is dead as well", () => {
    const deep = JSON.parse(`${"[".repeat(10_000)}${"]".repeat(10_000)}`) as unknown;
    expect(decode(shown("order", sampleOrder({ metadata: { deep } })))).toMatchObject({
      ok: false,
      reason: "object: is nested too deeply to be stored",
    });
  });
});

describe("an object without a required key is thin", () => {
  const required = {
    order: ["status", "subtotal", "discount_amount", "total", "currency", "created_at"],
    transaction: ["type", "status", "amount", "currency", "created_at"],
    subscription: ["status", "customer_id", "created_at"],
    customer: ["email", "created_at"],
  } as const;
  test.each(Object.entries(required).flatMap(([resource, keys]) => keys.map((key) => [resource, key])))(
    "%s without %s",
    (resource, key) => {
      const { [String(key)]: _gone, ...object } = samples[resource as keyof typeof samples]();
      expect(decode(shown(resource as Resource, object))).toEqual({
        ok: false,
        partial: true,
        id: object["id"],
        states: [],
      });
    },
  );
});

describe("what the service may extend is kept as it comes", () => {
  test("an unknown status, currency and field, of any resource", () => {
    for (const resource of Object.keys(samples) as (keyof typeof samples)[]) {
      const object = samples[resource]({ status: "on_hold", currency: "xyz", novelty: { a: [1] } });
      const [state] = statesOf(resource, object);
      expect(JSON.parse(state?.json ?? "")).toMatchObject({
        status: "on_hold",
        novelty: { a: [1] },
      });
    }
    const [order] = statesOf("order", sampleOrder({ status: "on_hold", currency: "xyz" }));
    expect(order?.columns).toMatchObject({ status: "on_hold", currency: "xyz" });
  });

  test("an optional field of an unexpected type is null in its column and stays in the content", () => {
    const odd = {
      description: 7,
      subscription_id: ["x"],
      payment_method: "card",
      failure_code: {},
    };
    const [order] = statesOf("order", sampleOrder({ ...odd, customer_id: "x".repeat(10_000) }));
    expect(order?.columns).toMatchObject({
      description: null,
      subscription_id: null,
      payment_method_id: null,
      customer_id: null,
    });
    expect(JSON.parse(order?.json ?? "")).toMatchObject(odd);
  });
});

describe("the groups of an order", () => {
  test("are its core alone where nothing else is shown", () => {
    expect(groupsOf(sampleOrder())).toEqual(["order"]);
  });
  test("are the same core however much was embedded", () => {
    const [bare] = statesOf("order", sampleOrder());
    const embedded = { customer: sampleCustomer(), items: [{}], transactions: [sampleEntry()] };
    const [full] = statesOf("order", sampleOrder(embedded));
    expect(full?.hash).toBe(bare?.hash);
  });
  test("hold dunning fields of events only, and these do not change the core", () => {
    const failed = sampleOrder({ attempt_count: 2, next_retry_at: at(60), items: [] });
    expect(groupsOf(failed)).toEqual(["order", "order.items", "order.dunning"]);
    const read = decode(seen("order", failed, 5));
    expect(read.ok && read.states.map(({ group }) => group)).toEqual(["order", "order.items"]);
    expect(statesOf("order", failed)[0]?.hash).toBe(statesOf("order", sampleOrder())[0]?.hash);
  });
});

describe("a transaction inside an order", () => {
  const inline = (entry: unknown) => {
    const decoded = decode(shown("order", sampleOrder({ updated_at: at(9), transactions: [entry] })));
    if (!decoded.ok) throw new Error("not read");
    return { state: decoded.states[1], unread: decoded.unread };
  };
  test("takes customer, currency and card from its order", () => {
    const { state } = inline(sampleEntry({ currency: undefined }));
    expect(state).toMatchObject({ id: "sale-1", updatedAt: "2025-03-01T12:00:00.000000Z" });
    expect(state?.columns).toMatchObject({
      customer_id: "customer-1",
      currency: "usd",
      amount: 1_000,
    });
  });
  test("is as new as the order, or newer by its own time", () => {
    expect(inline(sampleEntry()).state?.version).toMatch(/^2025-03-01T12:00:09/);
    expect(inline(sampleEntry({ updated_at: at(20) })).state?.version).toMatch(/^2025-03-01T12:00:20/);
    expect(inline(sampleEntry({ updated_at: null })).state?.updatedAt).toMatch(/^2025-03-01T12:00:09/);
  });
  test.each([{ status: undefined }, { amount: undefined }, { amount: "10" }, { amount: -1 }, { status: 3 }])(
    "is to be read itself where its state is not all there: %j",
    (fields) => {
      const { state, unread } = inline(sampleEntry(fields));
      expect(state).toBeUndefined();
      expect(unread).toEqual([{ resource: "transaction", id: "sale-1" }]);
    },
  );
  test.each([null, 7, "sale-1", ["sale-1"], {}, { id: 7 }])("that cannot be named is left alone: %j", (entry) => {
    expect(inline(entry)).toEqual({ state: undefined, unread: [] });
  });
});

test("an object's own time is its version, and the event's only where it has none", () => {
  const [own] = statesOf("order", sampleOrder());
  expect(own?.updatedAt).toBe("2025-03-01T12:00:00.000000Z");
  const { updated_at: _none, ...object } = sampleOrder();
  const decoded = decode(shown("order", object, at(30)));
  expect(decoded.ok && decoded.states[0]?.updatedAt).toBe("2025-03-01T12:00:30.000000Z");
});

test("a subscription's plan counts as its summary, however much of it was embedded", () => {
  const plan = { id: "plan-1", name: "Monthly", amount: 900, currency: "usd" };
  const [summary] = statesOf("subscription", sampleSubscription({ plan }));
  const [expanded] = statesOf(
    "subscription",
    sampleSubscription({ plan: { ...plan, active: true, billing_cycles: 0 } }),
  );
  expect(expanded?.hash).toBe(summary?.hash);
});
