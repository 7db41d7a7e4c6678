import { afterAll, beforeAll, describe, expect, test } from "vitest";

import type { Json, TestSandbox } from "./harness.ts";
import {
  aCustomer,
  anOrder,
  aSubscription,
  eventTypesOf,
  expectRefusal,
  startTestSandbox,
} from "./harness.ts";

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startTestSandbox();
});
afterAll(() => sandbox.close());

const address = {
  full_name: "Ada Byron Lovelace",
  address_line1: "12 St James's Square",
  city: "London",
  state: "LDN",
  postal_code: "SW1Y 4LB",
  country: "GB",
};

const cardsOf = async (id: string): Promise<Json[]> =>
  (await sandbox.ok("GET", `/v1/customers/${id}?expand=payment_methods`)).payment_methods;

describe("customers", () => {
  test("[S] 163 [S] 164 [S] 172 every field is stored and returned", async () => {
    const body = {
      email: "full@example.test",
      first_name: "Ada",
      last_name: "Lovelace",
      phone: "+442071234567",
      company: "Analytical",
      shipping_address: address,
      metadata: { tier: "gold", nested: { a: 1 } },
    };
    const customer = await sandbox.ok("POST", "/v1/customers", body);
    expect(customer).toMatchObject(body);
    expect(customer.shipping_address.id).toMatch(/^[0-9a-f-]{36}$/);
    expect(await sandbox.ok("GET", `/v1/customers/${customer.id}`)).toEqual(customer);
    expect(await eventTypesOf(sandbox, customer.id)).toEqual(["customer.created"]);
  });

  test("[S] 165 [S] 166 [S] 186 e-mail and phone are unique, whatever their case", async () => {
    const first = await sandbox.ok("POST", "/v1/customers", {
      email: "Unique@example.test",
      phone: "+15550001111",
    });
    const again = await sandbox.call("POST", "/v1/customers", { email: "uNIQUE@example.test" });
    expectRefusal(again, 409, "email_already_exists", "email");
    const phone = { email: "phone@example.test", phone: "+15550001111" };
    expectRefusal(
      await sandbox.call("POST", "/v1/customers", phone),
      409,
      "phone_already_exists",
      "phone",
    );
    const other = await aCustomer(sandbox);
    const change = { email: "unique@example.test" };
    const taken = await sandbox.call("PATCH", `/v1/customers/${other.id}`, change);
    expectRefusal(taken, 409, "email_already_exists");
    await sandbox.ok("PATCH", `/v1/customers/${first.id}`, change);
  });

  test("[S] 168 malformed e-mail and phone are refused", async () => {
    for (const phone of ["555", "0015551234567", "+0123456789", "+1 555 123 4567"]) {
      const called = await sandbox.call("POST", "/v1/customers", {
        email: "p@example.test",
        phone,
      });
      expectRefusal(called, 400, "invalid_format", "phone");
    }
  });

  test("[S] 169 [S] 170 [A] 171 a token makes the default card; an unknown one makes nothing", async () => {
    const customer = await aCustomer(sandbox, "card_mastercard");
    const [card] = await cardsOf(customer.id);
    expect(card).toMatchObject({
      id: customer.default_payment_method_id,
      type: "card",
      is_default: true,
      card: { last4: "1111", brand: "mastercard" },
    });
    expect(card.card.exp).toMatch(/^\d\d\/20\d\d$/);
    const unknown = { email: "vault@example.test", svc_gateway_customer_vault_id: "constructor" };
    expectRefusal(await sandbox.call("POST", "/v1/customers", unknown), 400, "invalid_value");
    expect((await sandbox.ok("GET", "/v1/customers?email=vault@example.test")).data).toEqual([]);
  });

  test("[S] 174 [S] 175 email is exact, q matches text", async () => {
    await sandbox.ok("POST", "/v1/customers", { email: "grace@navy.test", last_name: "Hopper" });
    const find = async (query: string) =>
      (await sandbox.ok("GET", `/v1/customers?${query}`)).data.map((c: Json) => c.email);
    expect(await find("email=grace@navy.test")).toEqual(["grace@navy.test"]);
    expect(await find("email=grace")).toEqual([]);
    expect(await find("q=hopp")).toEqual(["grace@navy.test"]);
    expect(await find("q=navy.test%20HOPPER")).toEqual(["grace@navy.test"]);
  });

  test("[S] 178 [S] 179 [A] 180 payment methods and subscriptions are there when asked for", async () => {
    const customer = await aCustomer(sandbox);
    expect(customer.payment_methods).toBeUndefined();
    await aSubscription(sandbox, customer);
    const path = `/v1/customers/${customer.id}?expand=payment_methods,subscriptions`;
    const expanded = await sandbox.ok("GET", path);
    expect(expanded.payment_methods).toHaveLength(1);
    expect(expanded.subscriptions).toHaveLength(1);
    const list = await sandbox.call("GET", "/v1/customers?expand=subscriptions");
    expectRefusal(list, 400, "invalid_value");
  });

  test("[S] 185 [A] 188 PATCH changes what was sent and moves updated_at; an empty one does nothing", async () => {
    const customer = await aCustomer(sandbox);
    const changed = await sandbox.ok("PATCH", `/v1/customers/${customer.id}`, { company: "New" });
    expect(changed).toEqual({ ...customer, company: "New", updated_at: changed.updated_at });
    expect(changed.updated_at > customer.updated_at).toBe(true);
    expect(await sandbox.ok("PATCH", `/v1/customers/${customer.id}`, {})).toEqual(changed);
    const types = await eventTypesOf(sandbox, customer.id);
    expect(types).toEqual(["customer.created", "customer.updated"]);
  });

  test("[S] 195 [S] 197 [A] 198 without orders a deletion is for good and frees the address", async () => {
    const customer = await aCustomer(sandbox);
    const path = `/v1/customers/${customer.id}`;
    const answer = await sandbox.ok("DELETE", path);
    expect(answer).toEqual({ id: customer.id, deleted: true, message: expect.any(String) });
    expectRefusal(await sandbox.call("GET", path), 404, "resource_not_found");
    const listed = await sandbox.ok("GET", `/v1/customers?email=${customer.email}&deleted=true`);
    expect(listed.data).toEqual([]);
    await sandbox.ok("POST", "/v1/customers", { email: customer.email });
    const snapshot = await sandbox.control("GET", "/snapshot");
    expect(snapshot.hard_deleted.customers).toContain(customer.id);
    expect(await eventTypesOf(sandbox, customer.id)).toContain("customer.deleted");
  });

  test("[S] 193 [S] 194 [A] 184 [S] 177 [S] 187 [S] 196 with orders, also failed ones, it is soft", async () => {
    const customer = await aCustomer(sandbox, "card_visa_declined");
    await anOrder(sandbox, customer);
    const path = `/v1/customers/${customer.id}`;
    const first = await sandbox.ok("DELETE", path);
    expect(await sandbox.ok("DELETE", path)).toEqual(first);
    const deleted = await sandbox.ok("GET", path);
    expect(deleted.deleted).toBe(true);
    const query = `email=${customer.email}`;
    expect((await sandbox.ok("GET", `/v1/customers?${query}`)).data).toEqual([]);
    const listed = await sandbox.ok("GET", `/v1/customers?${query}&deleted=true`);
    expect(listed.data).toHaveLength(1);
    expectRefusal(
      await sandbox.call("PATCH", path, { company: "x" }),
      400,
      "invalid_state_transition",
    );
    const events = await eventTypesOf(sandbox, customer.id);
    expect(events).toEqual(["customer.created", "customer.deleted"]);
  });

  test("[S] 190 an active subscription blocks the deletion", async () => {
    const customer = await aCustomer(sandbox);
    const subscription = await aSubscription(sandbox, customer);
    const path = `/v1/customers/${customer.id}`;
    expectRefusal(await sandbox.call("DELETE", path), 400, "customer_has_active_subscriptions");
    expect(await sandbox.ok("GET", path)).toEqual(customer);
    await sandbox.ok("DELETE", `/v1/subscriptions/${subscription.id}`);
    await sandbox.ok("DELETE", path);
  });

  test("[A] 199 a deleted customer cannot buy", async () => {
    const customer = await aCustomer(sandbox);
    const order = await anOrder(sandbox, customer);
    await sandbox.ok("DELETE", `/v1/customers/${customer.id}`);
    const called = await sandbox.call("POST", "/v1/orders", {
      customer_id: customer.id,
      payment_method_id: customer.default_payment_method_id,
      items: [{ product_id: order.items[0].product_id, quantity: 1 }],
    });
    expectRefusal(called, 400, "invalid_value", "customer_id");
  });
});

describe("payment methods", () => {
  const add = (customer: Json, billing_id: string, more: object = {}) =>
    sandbox.ok("POST", `/v1/customers/${customer.id}/payment_methods`, { billing_id, ...more });

  test("[S] 200 [S] 201 [S] 202 [A] 203 cards are added, the first or the chosen one is the default", async () => {
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

  test("[S] 204 [S] 206 update_subscriptions moves the active ones, and only when asked for", async () => {
    const customer = await aCustomer(sandbox);
    const { id } = await aSubscription(sandbox, customer);
    await add(customer, "card_amex");
    const cardOf = async () =>
      (await sandbox.ok("GET", `/v1/subscriptions/${id}`)).payment_method.card_brand;
    expect(await cardOf()).toBe("visa");
    await add(customer, "card_mastercard", { update_subscriptions: true });
    expect(await cardOf()).toBe("mastercard");
    expect(await eventTypesOf(sandbox, id)).toEqual([
      "subscription.created",
      "subscription.updated",
    ]);
  });

  test("[S] 207 unknown customers and cards are refused", async () => {
    const body = { billing_id: "card_visa" };
    const unknown = await sandbox.call("POST", "/v1/customers/nobody/payment_methods", body);
    expectRefusal(unknown, 404, "resource_not_found");
    const customer = await aCustomer(sandbox);
    const path = `/v1/customers/${customer.id}/payment_methods`;
    const called = await sandbox.call("POST", path, { billing_id: "4111111111111111" });
    expectRefusal(called, 400, "invalid_value", "billing_id");
  });

  test("[S] 210 [S] 211 [S] 212 [S] 213 [A] 214 a card in use needs a replacement", async () => {
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
    expect((await cardsOf(customer.id)).map((card) => [card.id, card.is_default])).toEqual([
      [next.id, true],
    ]);
  });

  test("[S] 216 [S] 217 cards are reached through their own customer only", async () => {
    const customer = await aCustomer(sandbox);
    const stranger = (await aCustomer(sandbox)).default_payment_method_id;
    const base = `/v1/customers/${customer.id}/payment_methods`;
    expectRefusal(await sandbox.call("DELETE", `${base}/${stranger}`), 404, "resource_not_found");
    expectRefusal(await sandbox.call("GET", base), 404, "resource_not_found");
  });
});
