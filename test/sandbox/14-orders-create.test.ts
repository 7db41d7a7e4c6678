import { beforeAll, expect, test } from "vitest";
import { type Json, aCustomer, anOrder, eventsOf, expectRefusal, productsOf } from "./harness.ts";
import { orderBody } from "./support/request-bodies.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();
let customer: Json;
let body: Json;
beforeAll(async () => {
  customer = await aCustomer(sandbox);
  body = await orderBody(sandbox, customer);
});

const create = (change: object) => sandbox.call("POST", "/v1/orders", { ...body, ...change });

test("an approved charge is a succeeded order with its sale", async () => {
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
test.each(outcomes)("the card %s gives %s, always with 201", async (token, code) => {
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
});

test("a processing error has its own text", async () => {
  const reasons = await Promise.all(
    ["card_visa_declined", "card_processing_error"].map(async (token) => {
      const payer = await aCustomer(sandbox, token);
      return (await anOrder(sandbox, payer)).failure_reason as string;
    }),
  );
  expect(reasons[0]).not.toBe(reasons[1]);
});

test.each(["customer_id", "payment_method_id", "items"])("%s is required", async (field) => {
  expectRefusal(await create({ [field]: undefined }), 400, "required_field", field);
});

test("items are some, whole and without a price", async () => {
  const [item] = body.items;
  expectRefusal(await create({ items: [] }), 400, "invalid_value", "items");
  for (const quantity of [0, -1, 1.5, "2"]) {
    const called = await create({ items: [{ ...item, quantity }] });
    expectRefusal(called, 400, "invalid_value", "items.0.quantity");
  }
  const priced = await create({ items: [{ ...item, price: 1 }] });
  expectRefusal(priced, 400, "invalid_value", "items.0.price");
});

test("prices come from the catalogue", async () => {
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

test("unknown and foreign things are 404", async () => {
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

test("a customer without a card is not configured", async () => {
  const bare = await aCustomer(sandbox, null);
  const called = await create({ customer_id: bare.id });
  expectRefusal(called, 400, "customer_not_configured", "customer_id");
  expect(called.body.error.type).toBe("processing_error");
});

test("one currency an order, and the one that was sent", async () => {
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
test.each(Object.keys(address))("an address needs %s", async (field) => {
  const called = await create({ shipping_address: { ...address, [field]: undefined } });
  expectRefusal(called, 400, "required_field", `shipping_address.${field}`);
  expect(called.body.error.message).toBe(`shipping_address.${field}: is required`);
  const empty = await create({ shipping_address: { ...address, [field]: "" } });
  expect([empty.status, empty.body.error.param]).toEqual([400, `shipping_address.${field}`]);
});

test("addresses are made and used again", async () => {
  const first = (await create({ shipping_address: address })).body;
  expect(first.shipping_address).toMatchObject({ ...address, address_line2: null, phone: null });
  const { id } = first.shipping_address;
  const second = (await create({ shipping_address_id: id })).body;
  expect(second.shipping_address).toEqual(first.shipping_address);
  for (const country of ["us", "USA", "XX"]) {
    const called = await create({ shipping_address: { ...address, country } });
    expectRefusal(called, 400, "invalid_format", "shipping_address.country");
  }
  const phone = await create({ shipping_address: { ...address, phone: "555" } });
  expectRefusal(phone, 400, "invalid_format", "shipping_address.phone");
  const both = await create({ shipping_address: address, shipping_address_id: id });
  expectRefusal(both, 400, "invalid_value");
});

test("description, metadata and a readable, unique number are kept", async () => {
  const order = (await create({ description: "Two teas", metadata: { a: "b" } })).body;
  expect(order).toMatchObject({ description: "Two teas", metadata: { a: "b" } });
  expect(order.order_number).toMatch(/^[0-9A-Z]{8}$/);
  const { data } = await sandbox.ok("GET", "/v1/orders?limit=100");
  expect(new Set(data.map((o: Json) => o.order_number)).size).toBe(data.length);
});

test("order.created shows the pending order, then the outcome follows with a later updated_at", async () => {
  const order = await anOrder(sandbox, customer);
  const [created, outcome, ...rest] = await eventsOf(sandbox, order.id);
  expect(rest).toEqual([]);
  expect([created.type, created.data.object.status]).toEqual(["order.created", "pending"]);
  expect(created.data.object.transactions).toEqual([]);
  expect(outcome.type).toBe("order.succeeded");
  expect(outcome.data.object).toEqual(order);
  expect(outcome.data.object.updated_at > created.data.object.updated_at).toBe(true);
});

test("order.failed of a one-time order has all four fields null", async () => {
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

test("a product that requires shipping needs an address", async () => {
  const product = await sandbox.ok("POST", "/v1/products", {
    name: "Teapot",
    pricing: { amount: 500, currency: "usd" },
    requires_shipping: true,
  });
  const items = [{ product_id: product.id, quantity: 1 }, ...body.items];
  expectRefusal(await create({ items }), 400, "required_field", "shipping_address");
  expect((await create({ items, shipping_address: address })).status).toBe(201);
});

test("an order can be neither changed nor deleted", async () => {
  const { body: order } = await create({});
  const path = `/v1/orders/${order.id}`;
  for (const method of ["PATCH", "PUT", "DELETE"]) {
    const refused = await sandbox.call(method, path, { description: "changed" });
    expect([404, 405]).toContain(refused.status);
  }
  expect(await sandbox.ok("GET", path)).toEqual(order);
});

test("an order whose gateway does not answer stays pending, and a repeat with the same key completes it", async () => {
  await sandbox.control("PUT", "/switches", { gateway_times_out: true });
  const payer = await aCustomer(sandbox);
  const card = payer.default_payment_method_id;
  const sent = { ...body, customer_id: payer.id, payment_method_id: card };
  const repeat = { idempotency: crypto.randomUUID() };
  const list = `/v1/orders?customer_id=${payer.id}`;
  for (let attempt = 0; attempt < 2; attempt++) {
    const unanswered = await sandbox.call("POST", "/v1/orders", sent, repeat);
    expectRefusal(unanswered, 502, "gateway_error");
    expect((await sandbox.ok("GET", list)).data).toMatchObject([{ status: "pending" }]);
  }
  const other = await sandbox.call("POST", "/v1/orders", { ...sent, description: "x" }, repeat);
  expectRefusal(other, 409, "idempotency_key_conflict");
  // Also over a restart: the key is part of the state.
  await sandbox.control("PUT", "/snapshot", await sandbox.control("GET", "/snapshot"));
  await sandbox.control("PUT", "/switches", { gateway_times_out: false });
  const [pending] = (await sandbox.ok("GET", list)).data;
  const order = await sandbox.ok("POST", "/v1/orders", sent, repeat);
  expect([order.id, order.status, order.transactions.length]).toEqual([pending.id, "succeeded", 1]);
  expect(await sandbox.ok("POST", "/v1/orders", sent, repeat)).toEqual(order);
  expect((await sandbox.ok("GET", list)).data).toHaveLength(1);
  const types = (await eventsOf(sandbox, order.id)).map((event) => event.type);
  expect(types).toEqual(["order.created", "order.succeeded"]);
});

test("while the gateway takes its time the order is there, pending, and its key in use", async () => {
  await sandbox.control("PUT", "/switches", { gateway_delay_ms: 400 });
  const payer = await aCustomer(sandbox);
  const sent = {
    ...body,
    customer_id: payer.id,
    payment_method_id: payer.default_payment_method_id,
  };
  const idempotency = crypto.randomUUID();
  const placed = sandbox.call("POST", "/v1/orders", sent, { idempotency });
  const list = `/v1/orders?customer_id=${payer.id}&expand=transactions`;
  let pending: Json[] = [];
  while (pending.length === 0) pending = (await sandbox.ok("GET", list)).data;
  expect(pending).toMatchObject([{ status: "pending", transactions: [] }]);
  expect((await sandbox.ok("GET", `/v1/orders/${pending[0].id}`)).status).toBe("pending");
  const again = await sandbox.call("POST", "/v1/orders", sent, { idempotency });
  expectRefusal(again, 409, "request_in_progress");
  const { status, body: order } = await placed;
  expect([status, order.id, order.status]).toEqual([201, pending[0].id, "succeeded"]);
  await sandbox.control("PUT", "/switches", { gateway_delay_ms: 0 });
});
