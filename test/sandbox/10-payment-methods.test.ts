import { expect, test } from "vitest";
import { z } from "zod";
import { testKey } from "../../src/parts/sandbox/engine/keys.ts";
import { allEndpoints } from "../../src/parts/sandbox/resources/all-endpoints.ts";
import {
  type Called,
  type Json,
  aCustomer,
  aSubscription,
  anOrder,
  eventTypesOf,
  expectRefusal,
  liveKey,
  startTestSandbox,
} from "./harness.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();

const cardsOf = async (id: string): Promise<Json[]> =>
  (await sandbox.ok("GET", `/v1/customers/${id}?expand=payment_methods`)).payment_methods;

const add = (customer: Json, billing_id: string, more: object = {}) =>
  sandbox.ok("POST", `/v1/customers/${customer.id}/payment_methods`, { billing_id, ...more });

test("cards are added, the first or the chosen one is the default", async () => {
  const customer = await aCustomer(sandbox, null);
  const first = await add(customer, "card_visa");
  expect(first).toMatchObject({ type: "card", customer_id: customer.id, is_default: true });
  const second = await add(customer, "card_amex");
  expect(second.is_default).toBe(false);
  const third = await add(customer, "card_discover", { set_as_default: true });
  const defaults = (await cardsOf(customer.id)).filter((card) => card.is_default);
  expect(defaults.map((card) => card.id)).toEqual([third.id]);
  const current = await sandbox.ok("GET", `/v1/customers/${customer.id}`);
  expect(current.default_payment_method_id).toBe(third.id);
});

test("update_subscriptions moves the active ones, and only when asked for", async () => {
  const customer = await aCustomer(sandbox);
  const { id } = await aSubscription(sandbox, customer);
  await add(customer, "card_amex");
  const cardOf = async () => (await sandbox.ok("GET", `/v1/subscriptions/${id}`)).payment_method.card_brand;
  expect(await cardOf()).toBe("visa");
  await add(customer, "card_mastercard", { update_subscriptions: true });
  expect(await cardOf()).toBe("mastercard");
  expect(await eventTypesOf(sandbox, id)).toEqual(["subscription.created", "subscription.updated"]);
});

test("unknown customers and cards are refused", async () => {
  const body = { billing_id: "card_visa" };
  const unknown = await sandbox.call("POST", "/v1/customers/nobody/payment_methods", body);
  expectRefusal(unknown, 404, "resource_not_found");
  const customer = await aCustomer(sandbox);
  const path = `/v1/customers/${customer.id}/payment_methods`;
  expectRefusal(await sandbox.call("POST", path, {}), 400, "required_field", "billing_id");
  const called = await sandbox.call("POST", path, { billing_id: "4111111111111111" });
  expectRefusal(called, 400, "invalid_value", "billing_id");
});

test("a card in use needs a replacement", async () => {
  const customer = await aCustomer(sandbox);
  const subscription = await aSubscription(sandbox, customer);
  const path = (card: string) => `/v1/customers/${customer.id}/payment_methods/${card}`;
  const used = customer.default_payment_method_id;
  const spare = await add(customer, "card_amex");
  expect(await sandbox.ok("DELETE", path(spare.id))).toMatchObject({
    id: spare.id,
    deleted: true,
  });
  expectRefusal(await sandbox.call("DELETE", path(used)), 400, "resource_in_use");
  const stranger = (await aCustomer(sandbox)).default_payment_method_id;
  for (const [replacement, status] of [
    [used, 400],
    [stranger, 404],
    ["nonsense", 404],
  ] as const) {
    const body = { replacement_payment_method_id: replacement };
    expect((await sandbox.call("DELETE", path(used), body)).status).toBe(status);
  }
  const next = await add(customer, "card_mastercard");
  await sandbox.ok("DELETE", path(used), { replacement_payment_method_id: next.id });
  const moved = await sandbox.ok("GET", `/v1/subscriptions/${subscription.id}`);
  expect(moved.payment_method.id).toBe(next.id);
  expect((await cardsOf(customer.id)).map((card) => [card.id, card.is_default])).toEqual([[next.id, true]]);
});

test("cards are reached through their own customer only", async () => {
  const customer = await aCustomer(sandbox);
  const stranger = (await aCustomer(sandbox)).default_payment_method_id;
  const base = `/v1/customers/${customer.id}/payment_methods`;
  expectRefusal(await sandbox.call("DELETE", `${base}/${stranger}`), 404, "resource_not_found");
  expectRefusal(await sandbox.call("GET", base), 404, "resource_not_found");
});

const cardToken = async (card: object = { number: "4111111111111111" }) =>
  (await sandbox.control("POST", "/card_tokens", card)).card_token as string;
const paymentToken = async (card: object = { number: "4111111111111111" }) =>
  (await sandbox.control("POST", "/payment_tokens", card)).payment_token as string;

/** A call of the gateway: its form answer. */
async function transact(fields: Record<string, string>): Promise<Record<string, string>> {
  const form = { security_key: "gateway_test_sandbox", ...fields };
  const response = await fetch(`${sandbox.url}/gateway/api/transact.php`, {
    method: "POST",
    body: new URLSearchParams(form),
  });
  return Object.fromEntries(new URLSearchParams(await response.text()));
}

async function capture(body: object, key: string | null = testKey): Promise<Called> {
  const response = await fetch(`${sandbox.url}/capture`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
    },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: await response.json(), headers: response.headers };
}

const rawCard = { number: "4000000000009995", exp_month: "12", exp_year: "2099", cvc: "999" };

test("the gateway vaults a card; the customer gets it as default, a second one by its billing id", async () => {
  const vault = await transact({
    customer_vault: "add_customer",
    payment_token: await paymentToken(),
  });
  expect(vault["response"]).toBe("1");
  const customer_vault_id = vault["customer_vault_id"] ?? "";
  const email = "vault@example.test";
  const customer = await sandbox.ok("POST", "/v1/customers", {
    email,
    svc_gateway_customer_vault_id: customer_vault_id,
  });
  const [card] = await cardsOf(customer.id);
  expect(card).toMatchObject({
    is_default: true,
    card: { last4: "1111", brand: "visa", exp: "12/2099" },
  });
  const amex = { number: "341111111111111", exp_month: 3, exp_year: 2031 };
  const added = await transact({
    customer_vault: "add_billing",
    customer_vault_id,
    payment_token: await paymentToken(amex),
  });
  expect(added["billing_id"]).not.toBe(customer_vault_id);
  const second = await add(customer, added["billing_id"] ?? "");
  expect(second.card).toEqual({ last4: "1111", brand: "amex", exp: "03/2031" });
});

test("the same billing id twice is refused", async () => {
  const { billing_id = "" } = await transact({
    customer_vault: "add_customer",
    payment_token: await paymentToken(),
  });
  const customer = await aCustomer(sandbox, null);
  await add(customer, billing_id);
  const path = `/v1/customers/${customer.id}/payment_methods`;
  const again = await sandbox.call("POST", path, { billing_id });
  expectRefusal(again, 409, "resource_already_exists", "billing_id");
});

test("a payment token lasts fifteen minutes and one use", async () => {
  const used = await paymentToken();
  const add_customer = { customer_vault: "add_customer" };
  expect((await transact({ ...add_customer, payment_token: used }))["response"]).toBe("1");
  expect((await transact({ ...add_customer, payment_token: used }))["response"]).toBe("3");
  const late = await paymentToken();
  const inTime = await paymentToken();
  await sandbox.control("POST", "/clock", { advance_seconds: 14 * 60 });
  expect((await transact({ ...add_customer, payment_token: inTime }))["response"]).toBe("1");
  await sandbox.control("POST", "/clock", { advance_seconds: 61 });
  expect((await transact({ ...add_customer, payment_token: late }))["response"]).toBe("3");
});

test("the gateway takes its own security key and no other", async () => {
  const payment_token = await paymentToken();
  for (const security_key of ["", "nonsense", testKey]) {
    const answer = await transact({ security_key, customer_vault: "add_customer", payment_token });
    expect(answer).toMatchObject({ response: "3", responsetext: "Authentication Failed" });
  }
  const asKey = await sandbox.call("GET", "/v1/orders", undefined, { key: "gateway_test_sandbox" });
  expectRefusal(asKey, 401, "invalid_api_key_format");
  const odd = await transact({ customer_vault: "delete_everything", payment_token });
  expect(odd["response"]).toBe("3");
  const nowhere = { customer_vault: "add_billing", customer_vault_id: "1", payment_token };
  expect((await transact(nowhere))["response"]).toBe("3");
});

test("a card token works once within fifteen minutes", async () => {
  const customer = await aCustomer(sandbox, null);
  const path = `/v1/customers/${customer.id}/payment_methods`;
  const card_token = await cardToken();
  await sandbox.ok("POST", path, { card_token });
  const late = await cardToken();
  await sandbox.control("POST", "/clock", { advance_seconds: 15 * 60 });
  for (const token of [card_token, late, "card_token_nonsense"]) {
    const called = await sandbox.call("POST", path, { card_token: token });
    expectRefusal(called, 400, "invalid_request", "card_token");
  }
  const both = await sandbox.call("POST", path, { card_token: late, billing_id: "card_visa" });
  expect(both.status).toBe(400);
});

test("the processor may want a billing address; the resend with one succeeds with the same token", async () => {
  await sandbox.control("PUT", "/switches", { billing_details: "required" });
  const customer = await aCustomer(sandbox, null);
  const path = `/v1/customers/${customer.id}/payment_methods`;
  const card_token = await cardToken();
  const refused = await sandbox.call("POST", path, { card_token });
  expectRefusal(refused, 400, "invalid_request", "billing_details");
  const billing_details = { address: { address_line1: "1 Main Street", country: "US" } };
  await sandbox.ok("POST", path, { card_token, billing_details });
  await sandbox.control("PUT", "/switches", { billing_details: "optional" });
});

test("a vault that keeps its card: gateway_delete_failed, and the method remains", async () => {
  const customer = await aCustomer(sandbox);
  const second = await add(customer, "card_amex");
  await sandbox.control("PUT", "/switches", { gateway_keeps_cards: true });
  const path = `/v1/customers/${customer.id}/payment_methods/${second.id}`;
  expectRefusal(await sandbox.call("DELETE", path), 502, "gateway_delete_failed");
  expect(await cardsOf(customer.id)).toHaveLength(2);
  await sandbox.control("PUT", "/switches", { gateway_keeps_cards: false });
  await sandbox.ok("DELETE", path);
});

test("capture takes a card for a customer", async () => {
  const customer = await aCustomer(sandbox);
  const body = { customer_id: customer.id, card: rawCard, set_as_default: true };
  const captured = await capture(body);
  expect(captured.status).toBe(201);
  expect(captured.body).toMatchObject({
    customer_id: customer.id,
    is_default: true,
    card: { last4: "9995", brand: "visa", exp: "12/2099" },
  });
  const order = await anOrder(sandbox, customer, { payment_method_id: captured.body.id });
  expect(order.failure_code).toBe("insufficient_funds");
});

test("capture wants a key and strings", async () => {
  const customer = await aCustomer(sandbox);
  const body = { customer_id: customer.id, card: rawCard };
  expectRefusal(await capture(body, null), 401, "missing_api_key");
  for (const [field, value] of [
    ["number", 4111111111111111],
    ["exp_month", 12],
    ["exp_year", 2099],
    ["cvc", 999],
  ] as const) {
    const called = await capture({ ...body, card: { ...rawCard, [field]: value } });
    expectRefusal(called, 400, "invalid_value", `card.${field}`);
  }
  const expired = await capture({ ...body, card: { ...rawCard, exp_year: "2020" } });
  expectRefusal(expired, 400, "invalid_request", "card_token");
});

test("a card number is taken by capture alone, and neither kept nor repeated", async () => {
  const number = "4916338506082832";
  const customer = await aCustomer(sandbox);
  await capture({ customer_id: customer.id, card: { ...rawCard, number, cvc: "7531" } });
  const refused = await capture({
    customer_id: customer.id,
    card: { ...rawCard, number: `${number}x` },
  });
  expect(JSON.stringify(refused.body)).not.toContain(number);
  await paymentToken({ number });
  const snapshot = JSON.stringify(await sandbox.control("GET", "/snapshot"));
  expect(snapshot).not.toContain(number);
  // As a value: within ids and hashes four digits come by chance.
  expect(snapshot).not.toMatch(/[":,[]7531[",}\]]/);
  for (const { endpoint } of allEndpoints) {
    expect(
      `${endpoint.path} ${Object.keys(endpoint.body instanceof z.ZodObject ? endpoint.body.shape : {}).join(" ")}`,
    ).not.toMatch(/\b(number|cvc|cvv|exp_month)\b/);
  }
});

test("the live gateway takes real cards and no test cards", async () => {
  const security_key = "gateway_live_sandbox";
  const refused = await sandbox.tryControl("POST", "/payment_tokens", {
    number: "4111111111111111",
    mode: "live",
  });
  expect(refused.status).toBe(400);
  const payment_token = await paymentToken({ number: "4916338506082832", mode: "live" });
  const vault = await transact({ security_key, customer_vault: "add_customer", payment_token });
  const live = { key: liveKey };
  const email = "live-vault@example.test";
  const body = { email, svc_gateway_customer_vault_id: vault["customer_vault_id"] };
  expect((await sandbox.ok("POST", "/v1/customers", body, live)).default_payment_method_id).toBeTruthy();
  const inTest = await sandbox.call("POST", "/v1/customers", body);
  expectRefusal(inTest, 400, "invalid_value", "svc_gateway_customer_vault_id");
});

test("a deleted card stays visible as a summary in past orders", async () => {
  const customer = await aCustomer(sandbox);
  const order = await anOrder(sandbox, customer);
  const second = await add(customer, "card_amex");
  const path = `/v1/customers/${customer.id}/payment_methods/${customer.default_payment_method_id}`;
  await sandbox.ok("DELETE", path, { replacement_payment_method_id: second.id });
  const { payment_method } = await sandbox.ok("GET", `/v1/orders/${order.id}`);
  expect(payment_method).toEqual({
    id: customer.default_payment_method_id,
    card_last_four: "1111",
    card_brand: "visa",
  });
});

test("update_subscriptions leaves what is past due as it is", async () => {
  const own = await startTestSandbox();
  await own.control("POST", "/clock", { now: "2026-03-01T00:00:00Z" });
  const customer = await aCustomer(own, "card_renewal_declined");
  const { id } = await aSubscription(own, customer);
  await own.control("POST", "/clock", { advance_seconds: 31 * 86_400 });
  const before = await own.ok("GET", `/v1/subscriptions/${id}`);
  expect(before.status).toBe("past_due");
  const path = `/v1/customers/${customer.id}/payment_methods`;
  await own.ok("POST", path, { billing_id: "card_visa", update_subscriptions: true });
  expect(await own.ok("GET", `/v1/subscriptions/${id}`)).toEqual(before);
  await own.close();
});
