import { afterAll, beforeAll, describe, expect, test } from "vitest";

import type { Json, TestSandbox } from "./harness.ts";
import {
  aCustomer,
  anOrder,
  eventsOf,
  eventTypesOf,
  expectRefusal,
  productsOf,
  startTestSandbox,
} from "./harness.ts";

let sandbox: TestSandbox;
let customer: Json;
let body: Json;
beforeAll(async () => {
  sandbox = await startTestSandbox();
  customer = await aCustomer(sandbox);
  const [product] = await productsOf(sandbox);
  body = {
    customer_id: customer.id,
    payment_method_id: customer.default_payment_method_id,
    items: [{ product_id: product.id, quantity: 1 }],
  };
});
afterAll(() => sandbox.close());

const create = (change: object) => sandbox.call("POST", "/v1/orders", { ...body, ...change });
const refund = (id: string, sent?: object) => sandbox.call("POST", `/v1/orders/${id}/refund`, sent);
const retry = (id: string) => sandbox.call("POST", `/v1/orders/${id}/retry`);

describe("creation", () => {
  test("[S] 276 [S] 237 [S] 298 [S] 303 [S] 219 an approved charge is a succeeded order with its sale", async () => {
    const order = await anOrder(sandbox, customer);
    expect(order).toMatchObject({ status: "succeeded", failure_code: null, failure_reason: null });
    expect([order.subscription_id, order.subscription_cycle]).toEqual([null, null]);
    expect(order.transactions).toEqual([
      expect.objectContaining({
        type: "sale",
        status: "succeeded",
        attempt_count: 1,
        amount: order.total,
      }),
    ]);
    expect(order.transactions[0].processor_transaction_id).toBeTruthy();
    expect(order.payment_method).toEqual({
      id: customer.default_payment_method_id,
      card_last_four: "1111",
      card_brand: "visa",
    });
    expect(await sandbox.ok("GET", `/v1/orders/${order.id}`)).toEqual(order);
  });

  const outcomes: [token: string, code: string | null][] = [
    ["card_visa", null],
    ["card_mastercard", null],
    ["card_amex", null],
    ["card_discover", null],
    ["card_visa_declined", "processor_declined"],
    ["card_mastercard_declined", "processor_declined"],
    ["card_insufficient_funds", "insufficient_funds"],
    ["card_expired", "expired_card"],
    ["card_processing_error", "processor_declined"],
    ["card_incorrect_cvv", "incorrect_cvv"],
    ["card_chargeback", null],
  ];
  test.each(outcomes)(
    "[S] 228 to 236, 277, 62 the card %s gives %s, always with 201",
    async (token, code) => {
      const payer = await aCustomer(sandbox, token);
      const called = await create({
        customer_id: payer.id,
        payment_method_id: payer.default_payment_method_id,
      });
      expect(called.status).toBe(201);
      const { status, failure_code, failure_reason, transactions } = called.body;
      expect([status, failure_code]).toEqual([code === null ? "succeeded" : "failed", code]);
      expect(failure_reason === null).toBe(code === null);
      expect(transactions.map((t: Json) => t.status)).toEqual([status]);
    },
  );

  test("[S] 232 a processing error has its own text", async () => {
    const reasons = await Promise.all(
      ["card_visa_declined", "card_processing_error"].map(async (token) => {
        const payer = await aCustomer(sandbox, token);
        return (await anOrder(sandbox, payer)).failure_reason as string;
      }),
    );
    expect(reasons[0]).not.toBe(reasons[1]);
  });

  test.each(["customer_id", "payment_method_id", "items"])(
    "[S] 278 %s is required",
    async (field) => {
      expectRefusal(await create({ [field]: undefined }), 400, "required_field", field);
    },
  );

  test("[S] 279 [S] 280 [S] 281 items are some, whole and without a price", async () => {
    const [item] = body.items;
    expectRefusal(await create({ items: [] }), 400, "invalid_value", "items");
    for (const quantity of [0, -1, 1.5, "2"]) {
      const called = await create({ items: [{ ...item, quantity }] });
      expectRefusal(called, 400, "invalid_value", "items.0.quantity");
    }
    const priced = await create({ items: [{ ...item, price: 1 }] });
    expectRefusal(priced, 400, "invalid_value", "items.0.price");
  });

  test("[S] 282 [S] 283 [S] 284 prices come from the catalogue", async () => {
    const [a, b] = await productsOf(sandbox);
    const items = [
      { product_id: a.id, quantity: 3 },
      { product_id: b.id, quantity: 2 },
    ];
    const order = (await create({ items })).body;
    expect(order.subtotal).toBe(3 * a.pricing.amount + 2 * b.pricing.amount);
    expect([order.discount_amount, order.total]).toEqual([0, order.subtotal]);
    expect(order.applied_coupon).toBeNull();
  });

  test("[S] 285 [S] 286 unknown and foreign things are 404", async () => {
    const stranger = await aCustomer(sandbox);
    const cases: [object, string][] = [
      [{ customer_id: "nobody" }, "customer_id"],
      [{ payment_method_id: "nothing" }, "payment_method_id"],
      [{ payment_method_id: stranger.default_payment_method_id }, "payment_method_id"],
      [{ items: [{ product_id: "nothing", quantity: 1 }] }, "items.0.product_id"],
      [{ shipping_address_id: "nowhere" }, "shipping_address_id"],
    ];
    for (const [change, param] of cases) {
      expectRefusal(await create(change), 404, "resource_not_found", param);
    }
  });

  test("[S] 287 [S] 58 a customer without a card is not configured", async () => {
    const bare = await aCustomer(sandbox, null);
    const called = await create({ customer_id: bare.id });
    expectRefusal(called, 400, "customer_not_configured", "customer_id");
    expect(called.body.error.type).toBe("processing_error");
  });

  test("[S] 288 [A] 289 one currency an order, and the one that was sent", async () => {
    const [euro] = await productsOf(sandbox, "eur");
    const items = [{ product_id: euro.id, quantity: 1 }];
    expect((await create({ items, currency: "eur" })).body.currency).toBe("eur");
    expectRefusal(await create({ items, currency: "usd" }), 400, "invalid_value", "currency");
    const mixed = await create({ items: [...items, ...body.items] });
    expectRefusal(mixed, 400, "invalid_value", "items");
  });

  const address = {
    first_name: "Ada",
    last_name: "Lovelace",
    address_line1: "1 Main Street",
    city: "Boston",
    state: "MA",
    postal_code: "02108",
    country: "US",
  };
  test.each(Object.keys(address))("[S] 291 an address needs %s", async (field) => {
    const called = await create({ shipping_address: { ...address, [field]: undefined } });
    expectRefusal(called, 400, "required_field", `shipping_address.${field}`);
  });

  test("[S] 290 [S] 291 [S] 292 [S] 293 [A] 294 addresses are made and used again", async () => {
    const first = (await create({ shipping_address: address })).body;
    expect(first.shipping_address).toMatchObject({ ...address, address_line2: null, phone: null });
    const { id } = first.shipping_address;
    const second = (await create({ shipping_address_id: id })).body;
    expect(second.shipping_address).toEqual(first.shipping_address);
    const country = await create({ shipping_address: { ...address, country: "us" } });
    expectRefusal(country, 400, "invalid_format", "shipping_address.country");
    const phone = await create({ shipping_address: { ...address, phone: "555" } });
    expectRefusal(phone, 400, "invalid_format", "shipping_address.phone");
    const both = await create({ shipping_address: address, shipping_address_id: id });
    expectRefusal(both, 400, "invalid_value");
  });

  test("[S] 296 [S] 297 description, metadata and a readable, unique number are kept", async () => {
    const order = (await create({ description: "Two teas", metadata: { a: "b" } })).body;
    expect(order).toMatchObject({ description: "Two teas", metadata: { a: "b" } });
    expect(order.order_number).toMatch(/^[0-9A-Z]{8}$/);
    const { data } = await sandbox.ok("GET", "/v1/orders?limit=100");
    expect(new Set(data.map((o: Json) => o.order_number)).size).toBe(data.length);
  });

  test("[S] 302 [A] 519 order.created shows the pending order, then the outcome follows with a later updated_at", async () => {
    const order = await anOrder(sandbox, customer);
    const [created, outcome, ...rest] = await eventsOf(sandbox, order.id);
    expect(rest).toEqual([]);
    expect([created.type, created.data.object.status]).toEqual(["order.created", "pending"]);
    expect(created.data.object.transactions).toEqual([]);
    expect(outcome.type).toBe("order.succeeded");
    expect(outcome.data.object).toEqual(order);
    expect(outcome.data.object.updated_at > created.data.object.updated_at).toBe(true);
  });

  test("[S] 515 order.failed of a one-time order has all four fields null", async () => {
    const poor = await aCustomer(sandbox, "card_visa_declined");
    const order = await anOrder(sandbox, poor);
    const [, failed] = await eventsOf(sandbox, order.id);
    expect(failed.type).toBe("order.failed");
    expect(failed.data.object).toMatchObject({
      subscription_id: null,
      subscription_cycle: null,
      attempt_count: null,
      next_retry_at: null,
    });
  });

  test("[S] 310 an unknown coupon code creates nothing", async () => {
    expectRefusal(await create({ coupon_code: "NOPE" }), 400, "code_not_found", "coupon_code");
  });
});

describe("refunds", () => {
  test("[S] 329 [S] 336 [S] 338 without an amount everything is given back", async () => {
    const order = await anOrder(sandbox, customer);
    const refunded = (await refund(order.id)).body;
    expect(refunded.status).toBe("refunded");
    expect(refunded.transactions[1]).toMatchObject({
      type: "refund",
      status: "succeeded",
      amount: order.total,
    });
    const { data } = await sandbox.ok("GET", `/v1/transactions?type=refund&order_id=${order.id}`);
    expect(data.map((t: Json) => t.id)).toEqual([refunded.transactions[1].id]);
    expect(await eventTypesOf(sandbox, order.id)).toEqual([
      "order.created",
      "order.succeeded",
      "order.refunded",
    ]);
  });

  test("[S] 330 [S] 331 [A] 332 [S] 333 partial refunds add up and never exceed the total", async () => {
    const order = await anOrder(sandbox, customer);
    expect((await refund(order.id, { amount: 100 })).body.status).toBe("partially_refunded");
    expect((await refund(order.id, { amount: 200 })).body.status).toBe("partially_refunded");
    const beyond = await refund(order.id, { amount: order.total - 299 });
    expectRefusal(beyond, 400, "invalid_value", "amount");
    expect((await sandbox.ok("GET", `/v1/orders/${order.id}`)).transactions).toHaveLength(3);
    const last = (await refund(order.id)).body;
    expect(last.status).toBe("refunded");
    expect(last.transactions.at(-1).amount).toBe(order.total - 300);
    const exact = await anOrder(sandbox, customer);
    expect((await refund(exact.id, { amount: exact.total })).body.status).toBe("refunded");
  });

  test("[A] 334 amounts that are no positive number of cents are refused", async () => {
    const order = await anOrder(sandbox, customer);
    for (const amount of [0, -1, 1.5, "1", null]) {
      expectRefusal(await refund(order.id, { amount }), 400, "invalid_value", "amount");
    }
  });

  test("[S] 337 concurrent refunds give back no more than the total", async () => {
    const order = await anOrder(sandbox, customer);
    const amount = Math.ceil(order.total / 3);
    await Promise.all(Array.from({ length: 6 }, () => refund(order.id, { amount })));
    const { transactions } = await sandbox.ok("GET", `/v1/orders/${order.id}`);
    const given = transactions
      .filter((t: Json) => t.type === "refund")
      .reduce((sum: number, t: Json) => sum + t.amount, 0);
    expect(given).toBeLessThanOrEqual(order.total);
    expect(given).toBe(2 * amount);
  });

  test("[S] 335 [S] 346 other statuses can be neither refunded nor retried", async () => {
    const control = (id: string, move: string) => sandbox.control("POST", `/orders/${id}/${move}`);
    const make = async (...moves: string[]) => {
      const { id } = await anOrder(sandbox, customer);
      for (const move of moves) await control(id, move);
      return id as string;
    };
    const cases = [
      await make("void"),
      await make("chargeback"),
      await make("chargeback", "chargeback_accept"),
      await make("chargeback", "chargeback_dismiss"),
    ];
    const refunded = await make();
    await refund(refunded);
    for (const id of [...cases, refunded]) {
      expectRefusal(await refund(id), 400, "invalid_state_transition");
      expectRefusal(await retry(id), 400, "invalid_state_transition");
    }
    const poor = await aCustomer(sandbox, "card_visa_declined");
    const failed = await anOrder(sandbox, poor);
    expectRefusal(await refund(failed.id), 400, "invalid_state_transition");
    expectRefusal(await retry(await make()), 400, "invalid_state_transition");
  });

  test("[A] 339 [S] 344 a refund that fails can be retried", async () => {
    const payer = await aCustomer(sandbox, "card_refund_failed_once");
    const order = await anOrder(sandbox, payer);
    const failed = (await refund(order.id, { amount: 100 })).body;
    expect([failed.status, failed.transactions[1].status]).toEqual(["refund_failed", "failed"]);
    expectRefusal(await refund(order.id), 400, "invalid_state_transition");
    const retried = (await retry(order.id)).body;
    expect(retried.status).toBe("partially_refunded");
    expect(retried.transactions.map((t: Json) => [t.status, t.amount])).toEqual([
      ["succeeded", order.total],
      ["failed", 100],
      ["succeeded", 100],
    ]);
  });
});

describe("retries", () => {
  test("[S] 342 [S] 343 [A] 352 [S] 354 [A] 242 declined, declined, approved", async () => {
    const payer = await aCustomer(sandbox, "card_declined_twice");
    const order = await anOrder(sandbox, payer);
    expect(order.status).toBe("failed");
    const again = (await retry(order.id)).body;
    expect(again.status).toBe("failed");
    expect(again.transactions.map((t: Json) => t.attempt_count)).toEqual([1, 2]);
    const approved = (await retry(order.id)).body;
    expect(approved).toMatchObject({
      status: "succeeded",
      failure_code: null,
      failure_reason: null,
    });
    expect(approved.transactions.map((t: Json) => t.status)).toEqual([
      "failed",
      "failed",
      "succeeded",
    ]);
    expect(await eventTypesOf(sandbox, order.id)).toEqual([
      "order.created",
      "order.failed",
      "order.failed",
      "order.succeeded",
    ]);
  });

  test("[S] 347 the order's own card is charged, whatever the default is now", async () => {
    const payer = await aCustomer(sandbox, "card_declined_once");
    const order = await anOrder(sandbox, payer);
    const path = `/v1/customers/${payer.id}/payment_methods`;
    await sandbox.ok("POST", path, { billing_id: "card_visa_declined", set_as_default: true });
    const retried = (await retry(order.id)).body;
    expect([retried.status, retried.payment_method.id]).toEqual([
      "succeeded",
      payer.default_payment_method_id,
    ]);
  });

  test("[A] 348 a card that is gone cannot be charged", async () => {
    const payer = await aCustomer(sandbox, "card_visa_declined");
    const order = await anOrder(sandbox, payer);
    const path = `/v1/customers/${payer.id}/payment_methods`;
    const other = await sandbox.ok("POST", path, { billing_id: "card_visa" });
    const body = { replacement_payment_method_id: other.id };
    await sandbox.ok("DELETE", `${path}/${payer.default_payment_method_id}`, body);
    expectRefusal(await retry(order.id), 400, "replacement_required");
    expect((await sandbox.ok("GET", `/v1/orders/${order.id}`)).transactions).toHaveLength(1);
  });
});

describe("chargebacks and voids", () => {
  test("[S] 234 [S] 355 [A] 356 [A] 357 the chargeback card is charged back some seconds later", async () => {
    const payer = await aCustomer(sandbox, "card_chargeback");
    const order = await anOrder(sandbox, payer);
    expect(order.status).toBe("succeeded");
    await sandbox.control("POST", "/clock", { advance_seconds: 6 });
    const charged = await sandbox.ok("GET", `/v1/orders/${order.id}`);
    expect([charged.status, charged.transactions[0].status]).toEqual(["chargeback", "chargeback"]);
    const sale = await sandbox.ok("GET", `/v1/transactions/${charged.transactions[0].id}`);
    expect(sale.status).toBe("chargeback");
    expect((await eventTypesOf(sandbox, order.id)).at(-1)).toBe("order.chargeback");
  });

  test("[A] 358 [A] 359 [A] 360 [A] 362 [S] 328 they are accepted or dismissed, under names that can be set", async () => {
    await sandbox.control("PUT", "/switches", { chargeback_events: { dismissed: "dispute.won" } });
    const order = await anOrder(sandbox, customer);
    await refund(order.id, { amount: 50 });
    const opened = await sandbox.control("POST", `/orders/${order.id}/chargeback`);
    expect(opened.transactions.map((t: Json) => t.status)).toEqual(["chargeback", "succeeded"]);
    const dismissed = await sandbox.control("POST", `/orders/${order.id}/chargeback_dismiss`);
    expect(dismissed.status).toBe("chargeback_dismissed");
    expect(dismissed.transactions[0].status).toBe("succeeded");
    expect(dismissed.updated_at > opened.updated_at).toBe(true);
    expect((await eventTypesOf(sandbox, order.id)).slice(-2)).toEqual([
      "order.chargeback",
      "dispute.won",
    ]);
    const again = await fetch(`${sandbox.url}/_sandbox/orders/${order.id}/chargeback_accept`, {
      method: "POST",
    });
    expect(again.status).toBe(400);
    await sandbox.control("PUT", "/switches", { chargeback_events: {} });
  });

  test("[A] 361 a void takes order and sale back", async () => {
    const order = await anOrder(sandbox, customer);
    const voided = await sandbox.control("POST", `/orders/${order.id}/void`);
    expect([voided.status, voided.transactions[0].status]).toEqual(["voided", "voided"]);
  });

  test("[A] 363 a silent change moves updated_at and sends nothing", async () => {
    const order = await anOrder(sandbox, customer);
    const before = (await sandbox.control("GET", "")).events;
    const set = { description: "changed behind your back", status: "voided" };
    await sandbox.control("POST", "/silent", { resource: "orders", id: order.id, set });
    const changed = await sandbox.ok("GET", `/v1/orders/${order.id}`);
    expect(changed).toEqual({ ...order, ...set, updated_at: changed.updated_at });
    expect(changed.updated_at > order.updated_at).toBe(true);
    const [sale] = order.transactions;
    const fail = { resource: "transactions", id: sale.id, set: { status: "failed" } };
    await sandbox.control("POST", "/silent", fail);
    const inline = (await sandbox.ok("GET", `/v1/orders/${order.id}`)).transactions[0];
    expect(inline.status).toBe("failed");
    expect((await sandbox.control("GET", "")).events).toBe(before);
  });

  test("[A] 363 a silent change keeps objects usable: fixed fields, wrong types and nulls are refused", async () => {
    const { id } = await anOrder(sandbox, customer);
    for (const set of [{ id: "x" }, { total: "1" }, { status: null }, { nonsense: 1 }]) {
      const response = await fetch(`${sandbox.url}/_sandbox/silent`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ resource: "orders", id, set }),
      });
      expect(response.status).toBe(400);
    }
    const person = await aCustomer(sandbox);
    const set = { email: "silent@example.test" };
    await sandbox.control("POST", "/silent", { resource: "customers", id: person.id, set });
    const taken = await sandbox.call("POST", "/v1/customers", set);
    expectRefusal(taken, 409, "email_already_exists");
    await sandbox.ok("POST", "/v1/customers", { email: person.email });
  });
});

describe("transactions", () => {
  test("[S] 429 [S] 430 [S] 433 [S] 437 agree with what the order shows inline", async () => {
    for (const token of ["card_visa", "card_incorrect_cvv"]) {
      const payer = await aCustomer(sandbox, token);
      const order = await anOrder(sandbox, payer);
      const [inline] = order.transactions;
      const sale = await sandbox.ok("GET", `/v1/transactions/${inline.id}`);
      expect(sale).toMatchObject({
        type: "sale",
        status: inline.status,
        amount: order.total,
        currency: order.currency,
        customer_id: payer.id,
        order_id: order.id,
        failure_reason: order.failure_reason,
        payment_method: order.payment_method,
      });
      expect(Object.keys(sale.processor_response).sort()).toEqual([
        "authorization_code",
        "avs_result",
        "cvv_result",
        "response_code",
        "response_text",
        "transaction_id",
      ]);
      expect(sale.processor_response.transaction_id).toBe(inline.processor_transaction_id);
    }
  });
});
