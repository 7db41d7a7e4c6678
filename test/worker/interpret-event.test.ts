import { describe, expect, test } from "vitest";
import { defaultEnvelopePaths, parseEventBody } from "../../src/core/contract/event-envelope.ts";
import { interpretEvent } from "../../src/core/worker/interpret-event.ts";
import { sampleCustomer, sampleOrder, sampleSubscription, sampleTransaction } from "../mirror/samples.ts";

const interpretBody = (body: string | Buffer) =>
  interpretEvent(defaultEnvelopePaths, { seq: 7, body: parseEventBody(Buffer.from(body)) });
const interpret = (type: unknown, object: unknown) =>
  interpretBody(JSON.stringify({ id: "evt", type, created_at: "2025-03-01T12:00:00Z", data: { object } }));

describe("an event shows its object's state", () => {
  test.each([
    ["order.created", sampleOrder(), "order"],
    ["order.anything.new", sampleOrder(), "order"],
    ["subscription.billing.updated", sampleSubscription(), "subscription"],
    ["customer.created", sampleCustomer(), "customer"],
    ["transaction.updated", sampleTransaction(), "transaction"],
  ])("%s", (type, object, resource) => {
    expect(interpret(type, object)).toEqual({
      kind: "state",
      observation: {
        resource,
        object,
        fallbackUpdatedAt: "2025-03-01T12:00:00.000000Z",
        observedAt: null,
        cause: "event:7",
      },
      alsoRead: [],
    });
  });

  test("whatever it is, though the type says another thing: what changed unseen is read", () => {
    const order = sampleOrder({ subscription_id: "subscription-1" });
    expect(interpret("subscription.charged", order)).toMatchObject({
      kind: "state",
      observation: { resource: "order" },
      alsoRead: [{ resource: "subscription", id: "subscription-1" }],
    });
    expect(interpret("order.refund.created", sampleTransaction())).toMatchObject({
      kind: "state",
      observation: { resource: "transaction" },
    });
  });

  test("with a byte order mark in front, too", () => {
    const body = JSON.stringify({ type: "order.created", data: { object: sampleOrder() } });
    expect(interpretBody(`\ufeff${body}`)).toMatchObject({ kind: "state" });
  });
});

describe("a renewal that was declined", () => {
  const declined = { status: "failed", subscription_id: "subscription-1", subscription_cycle: 2 };
  const alsoRead = (type: string, fields: object) => {
    const found = interpret(type, sampleOrder({ ...fields }));
    return found.kind === "state" ? found.alsoRead : found;
  };
  const subscription = [{ resource: "subscription", id: "subscription-1" }];

  test("has its subscription read, whatever the event is called", () => {
    expect(alsoRead("order.failed", declined)).toEqual(subscription);
    expect(alsoRead("order.updated", declined)).toEqual(subscription);
  });

  test("has it read where the event shows the attempt and no status", () => {
    const thin = { id: "order-1", ...declined, status: undefined, attempt_count: 2 };
    expect(interpret("order.failed", thin)).toMatchObject({ alsoRead: subscription });
  });

  test("costs no read where there is no renewal, or no decline", () => {
    expect(alsoRead("order.failed", { ...declined, subscription_cycle: null })).toEqual([]);
    expect(alsoRead("order.failed", { ...declined, subscription_id: null })).toEqual([]);
    expect(alsoRead("order.failed", { ...declined, subscription_id: "a\u0000" })).toEqual([]);
    expect(alsoRead("order.succeeded", { ...declined, status: "succeeded" })).toEqual([]);
  });
});

test("what belongs to a customer is none: the customer is read", () => {
  const paymentMethod = {
    id: "pm-1",
    type: "card",
    customer_id: "customer-1",
    created_at: "2025-03-01T12:00:00Z",
  };
  expect(interpret("customer.payment_method.created", paymentMethod)).toEqual({
    kind: "read",
    objects: [{ resource: "customer", id: "customer-1" }],
  });
  expect(interpret("customer.payment_method.created", { id: "pm-1", customer_id: 7 })).toEqual({
    kind: "read",
    objects: [],
  });
});

describe("a dispute, whatever it is called", () => {
  test.each(["order.chargeback", "chargeback.created", "dispute.opened", "DISPUTE", "x.Chargeback_won"])(
    "%s with an order or a transaction is its state",
    (type) => {
      const order = sampleOrder({ status: "chargeback" });
      expect(interpret(type, order)).toMatchObject({
        kind: "state",
        observation: { resource: "order" },
      });
      expect(interpret(type, sampleTransaction({ status: "chargeback" }))).toMatchObject({
        kind: "state",
        observation: { resource: "transaction" },
      });
    },
  );

  test("with anything else orders reads, of what it names as well", () => {
    const dispute = { id: "dp-1", reason: "fraud", order_id: "order-1", transaction_id: "sale-1" };
    expect(interpret("dispute.created", dispute)).toEqual({
      kind: "dispute",
      objects: [
        { resource: "order", id: "order-1" },
        { resource: "transaction", id: "sale-1" },
      ],
    });
    expect(interpret("order.chargeback_dismissed", { id: "order-1" })).toEqual({
      kind: "dispute",
      objects: [{ resource: "order", id: "order-1" }],
    });
    expect(interpret("dispute.created", null)).toEqual({ kind: "dispute", objects: [] });
    expect(interpret("dispute.created", { order_id: "a\u0000" })).toEqual({
      kind: "dispute",
      objects: [],
    });
  });

  test("is found by the state of an object, also under a type that nobody knows", () => {
    expect(interpret("payment.reversed", sampleOrder({ status: "chargeback" }))).toMatchObject({
      kind: "state",
      observation: { resource: "order" },
    });
  });
});

describe("what changes nothing here is ignored", () => {
  test.each([
    ["product.updated", { id: "product-1" }],
    ["payment.settled", sampleOrder()],
    ["constructor", {}],
    ["__proto__.x", {}],
    ["", {}],
    [null, {}],
    [7, {}],
    ["product.deleted", null],
  ])("%s", (type, object) => {
    expect(interpret(type, object)).toMatchObject({ kind: "ignored" });
  });
  test("with a reason of bounded length", () => {
    const { reason } = interpret("x".repeat(10_000), {}) as { reason: string };
    expect(reason.length).toBeLessThan(120);
  });
});

describe("what cannot be read is so with a reason", () => {
  test.each([
    ["broken JSON", '{"id":'],
    ["no JSON", "<html>"],
    ["nothing", ""],
    ["bytes that are not UTF-8", Buffer.from([0x22, 0xff, 0x22])],
  ])("%s", (_name, body) => {
    expect(interpretBody(body)).toEqual({ kind: "unreadable", reason: "body: not JSON in UTF-8" });
  });
  test.each([null, 7, "x", [1], undefined])("a family's object that is %j", (object) => {
    expect(interpret("order.created", object)).toEqual({
      kind: "unreadable",
      reason: "data.object: no object",
    });
  });
  test.each(["null", "7", '"text"', "[]"])("a body that is %s is ignored: it has no type", (body) => {
    expect(interpretBody(body)).toMatchObject({ kind: "ignored" });
  });
});
