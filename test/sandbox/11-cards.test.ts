import { expect, test } from "vitest";
import { testCards } from "../../src/parts/sandbox/resources/payment-methods/test-cards.ts";
import { failureCodes } from "../../src/core/contract/decline-codes.ts";
import { type Json, aCustomer, anOrder, eventTypesOf, liveKey } from "./harness.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();

/** An order paid with a card of that number, captured from its browser. */
async function orderWith(number: string): Promise<Json> {
  const customer = await aCustomer(sandbox, null);
  const { card_token } = await sandbox.control("POST", "/card_tokens", { number });
  const path = `/v1/customers/${customer.id}/payment_methods`;
  const { id } = await sandbox.ok("POST", path, { card_token });
  return anOrder(sandbox, customer, { payment_method_id: id });
}

test.each([
  ["4111111111111111", "visa"],
  ["5431111111111111", "mastercard"],
  ["341111111111111", "amex"],
  ["6011601160116611", "discover"],
])("%s succeeds as %s", async (number, brand) => {
  const order = await orderWith(number);
  expect([order.status, order.failure_code]).toEqual(["succeeded", null]);
  expect(order.payment_method).toMatchObject({
    card_brand: brand,
    card_last_four: number.slice(-4),
  });
});

test.each([
  ["4000000000000002", "processor_declined"],
  ["5105105105105100", "processor_declined"],
  ["4000000000009995", "insufficient_funds"],
  ["4000000000000069", "expired_card"],
  ["4000000000000127", "incorrect_cvv"],
])("%s is vaulted, and fails with %s when it is charged", async (number, code) => {
  const order = await orderWith(number);
  expect([order.status, order.failure_code]).toEqual(["failed", code]);
  expect(order.failure_reason).toBeTruthy();
});

test("the processing error has its own reason", async () => {
  const [declined, broken] = [await orderWith("4000000000000002"), await orderWith("4000000000000119")];
  expect(broken.failure_code).toBe("processor_declined");
  expect(broken.failure_reason).not.toBe(declined.failure_reason);
});

test("the chargeback card is charged, and charged back later", async () => {
  const order = await orderWith("4000000000000259");
  expect(order.status).toBe("succeeded");
  await sandbox.control("POST", "/clock", { advance_seconds: 6 });
  expect((await sandbox.ok("GET", `/v1/orders/${order.id}`)).status).toBe("chargeback");
  expect(await eventTypesOf(sandbox, order.id)).toContain("order.chargeback");
});

test("any other number succeeds", async () => {
  for (const number of ["4242424242424242", "5555555555554444", "378282246310005", "4000002500003155"]) {
    expect((await orderWith(number)).status).toBe("succeeded");
  }
});

test("settlement is immediate and nothing is challenged", async () => {
  const order = await orderWith("4111111111111111");
  expect(order.transactions[0].status).toBe("succeeded");
  expect(JSON.stringify(order)).not.toMatch(/challenge|requires_action|three_d|3ds/i);
});

test("every failure code has a token, and no token fails with another", async () => {
  const seen = new Set<string>();
  for (const token of Object.keys(testCards)) {
    const customer = await aCustomer(sandbox, token);
    const order = await anOrder(sandbox, customer);
    if (order.failure_code !== null) seen.add(order.failure_code);
  }
  expect([...seen].sort()).toEqual([...failureCodes].sort());
});

test("a card can change its mind from charge to charge", async () => {
  const order = await anOrder(sandbox, await aCustomer(sandbox, "card_declined_twice"));
  const retry = () => sandbox.ok("POST", `/v1/orders/${order.id}/retry`);
  expect([order.status, (await retry()).status, (await retry()).status]).toEqual(["failed", "failed", "succeeded"]);
});

test("a switch lets live sales wait 1 to 3 business days for their confirmation, not those of test keys", async () => {
  await sandbox.control("PUT", "/switches", { live_settlement_days: 2 });
  // A Friday.
  await sandbox.control("POST", "/clock", { now: "2032-01-02T10:00:00Z" });
  const live = { key: liveKey };
  const customer = await sandbox.ok("POST", "/v1/customers", { email: "l@example.test" }, live);
  const capture = { number: "4916338506082832", mode: "live" };
  const { card_token } = await sandbox.control("POST", "/card_tokens", capture);
  const cards = `/v1/customers/${customer.id}/payment_methods`;
  const card = await sandbox.ok("POST", cards, { card_token }, live);
  const [product] = (await sandbox.ok("GET", "/v1/products?limit=1", undefined, live)).data;
  const sent = {
    customer_id: customer.id,
    payment_method_id: card.id,
    items: [{ product_id: product.id, quantity: 1 }],
  };
  const order = await sandbox.ok("POST", "/v1/orders", sent, live);
  const voided = await sandbox.ok("POST", "/v1/orders", sent, live);
  expect([order.status, order.transactions[0].status]).toEqual(["succeeded", "pending"]);
  await sandbox.control("POST", `/orders/${voided.id}/void`, undefined);
  const statusAt = async (now: string, { id }: Json = order): Promise<string> => {
    await sandbox.control("POST", "/clock", { now });
    const { transactions, updated_at } = await sandbox.ok("GET", `/v1/orders/${id}`, undefined, live);
    const [{ id: sale, status }] = transactions;
    const alone = await sandbox.ok("GET", `/v1/transactions/${sale}`, undefined, live);
    expect([alone.status, updated_at >= alone.created_at]).toEqual([status, true]);
    return status;
  };
  expect(await statusAt("2032-01-02T23:59:59Z")).toBe("pending");
  expect(await statusAt("2032-01-03T00:00:00Z")).toBe("in_progress");
  expect(await statusAt("2032-01-06T09:59:59Z")).toBe("in_progress");
  expect(await statusAt("2032-01-06T10:00:00Z")).toBe("succeeded");
  expect(await statusAt("2032-02-01T00:00:00Z", voided)).toBe("voided");
  expect((await anOrder(sandbox, await aCustomer(sandbox))).transactions[0].status).toBe("succeeded");
});
