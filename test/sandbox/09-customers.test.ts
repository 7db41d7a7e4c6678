import { expect, test } from "vitest";
import {
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

test("every field is stored and returned", async () => {
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

test("e-mail and phone are unique, whatever their case", async () => {
  const first = await sandbox.ok("POST", "/v1/customers", {
    email: "Unique@example.test",
    phone: "+15550001111",
  });
  const again = await sandbox.call("POST", "/v1/customers", { email: "uNIQUE@example.test" });
  expectRefusal(again, 409, "email_already_exists", "email");
  const phone = { email: "phone@example.test", phone: "+15550001111" };
  expectRefusal(await sandbox.call("POST", "/v1/customers", phone), 409, "phone_already_exists", "phone");
  const other = await aCustomer(sandbox);
  const change = { email: "unique@example.test" };
  const taken = await sandbox.call("PATCH", `/v1/customers/${other.id}`, change);
  expectRefusal(taken, 409, "email_already_exists");
  await sandbox.ok("PATCH", `/v1/customers/${first.id}`, change);
});

test("malformed e-mail and phone are refused", async () => {
  for (const phone of ["555", "0015551234567", "+0123456789", "+1 555 123 4567"]) {
    const called = await sandbox.call("POST", "/v1/customers", {
      email: "p@example.test",
      phone,
    });
    expectRefusal(called, 400, "invalid_format", "phone");
  }
});

test("a token makes the default card; an unknown one makes nothing", async () => {
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

test("email is exact, q matches text", async () => {
  await sandbox.ok("POST", "/v1/customers", { email: "grace@navy.test", last_name: "Hopper" });
  const find = async (query: string) =>
    (await sandbox.ok("GET", `/v1/customers?${query}`)).data.map((c: Json) => c.email);
  expect(await find("email=grace@navy.test")).toEqual(["grace@navy.test"]);
  expect(await find("email=grace")).toEqual([]);
  expect(await find("q=hopp")).toEqual(["grace@navy.test"]);
  expect(await find("q=navy.test%20HOPPER")).toEqual(["grace@navy.test"]);
  // Words are found by their beginnings, each, and nothing inside of them.
  expect(await find("q=test%20hop,gra")).toEqual(["grace@navy.test"]);
  expect(await find("q=opper")).toEqual([]);
  expect(await find("q=hopper%20nobody")).toEqual([]);
});

test("payment methods and subscriptions are there when asked for", async () => {
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

test("PATCH changes what was sent and moves updated_at; an empty one does nothing", async () => {
  const customer = await aCustomer(sandbox);
  const changed = await sandbox.ok("PATCH", `/v1/customers/${customer.id}`, { company: "New" });
  expect(changed).toEqual({ ...customer, company: "New", updated_at: changed.updated_at });
  expect(changed.updated_at > customer.updated_at).toBe(true);
  expect(await sandbox.ok("PATCH", `/v1/customers/${customer.id}`, {})).toEqual(changed);
  const types = await eventTypesOf(sandbox, customer.id);
  expect(types).toEqual(["customer.created", "customer.updated"]);
});

test("without orders a deletion is for good, frees the address, and may be repeated", async () => {
  const customer = await aCustomer(sandbox);
  const path = `/v1/customers/${customer.id}`;
  const answer = await sandbox.ok("DELETE", path);
  expect(answer).toEqual({ id: customer.id, deleted: true, message: expect.any(String) });
  expect(await sandbox.ok("DELETE", path)).toEqual(answer);
  expectRefusal(await sandbox.call("GET", path), 404, "resource_not_found");
  const listed = await sandbox.ok("GET", `/v1/customers?email=${customer.email}&deleted=true`);
  expect(listed.data).toEqual([]);
  await sandbox.ok("POST", "/v1/customers", { email: customer.email });
  const snapshot = await sandbox.control("GET", "/snapshot");
  expect(snapshot.hard_deleted.customers).toContain(customer.id);
  const types = await eventTypesOf(sandbox, customer.id);
  expect(types.filter((type) => type === "customer.deleted")).toHaveLength(1);
});

test("with orders, also failed ones, it is soft", async () => {
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
  expectRefusal(await sandbox.call("PATCH", path, { company: "x" }), 400, "invalid_state_transition");
  const events = await eventTypesOf(sandbox, customer.id);
  expect(events).toEqual(["customer.created", "customer.deleted"]);
});

test("an active subscription blocks the deletion", async () => {
  const customer = await aCustomer(sandbox);
  const subscription = await aSubscription(sandbox, customer);
  const path = `/v1/customers/${customer.id}`;
  expectRefusal(await sandbox.call("DELETE", path), 400, "customer_has_active_subscriptions");
  expect(await sandbox.ok("GET", path)).toEqual(customer);
  await sandbox.ok("DELETE", `/v1/subscriptions/${subscription.id}`);
  await sandbox.ok("DELETE", path);
});

test("a deleted customer cannot buy", async () => {
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

test("the same e-mail address may be a customer of the other environment, or of another merchant", async () => {
  const body = { email: "everywhere@example.test" };
  await sandbox.ok("POST", "/v1/customers", body);
  await sandbox.ok("POST", "/v1/customers", body, { key: liveKey });
  const { keys } = await sandbox.control("POST", "/merchants", { name: "Another" });
  await sandbox.ok("POST", "/v1/customers", body, { key: keys.test });
});

test("a creation is announced once, a refused one not at all", async () => {
  const customer = await aCustomer(sandbox);
  expect(await eventTypesOf(sandbox, customer.id)).toEqual(["customer.created"]);
  const before = (await sandbox.control("GET", "")).events;
  await sandbox.call("POST", "/v1/customers", { email: customer.email });
  expect((await sandbox.control("GET", "")).events).toBe(before);
});

test("created_at bounds the list: from an instant on, and before one", async () => {
  const own = await startTestSandbox();
  const created: Json[] = [];
  for (const second of ["00", "10", "20"]) {
    await own.control("POST", "/clock", { now: `2026-03-01T12:00:${second}Z` });
    created.push(await aCustomer(own));
  }
  const ids = async (query: string) => (await own.ok("GET", `/v1/customers?${query}`)).data.map(({ id }: Json) => id);
  const [, middle, last] = created;
  expect(await ids(`created_at[gte]=${middle.created_at}`)).toEqual([last.id, middle.id]);
  const window = `created_at[gte]=${middle.created_at}&created_at[lt]=${last.created_at}`;
  expect(await ids(window)).toEqual([middle.id]);
  await own.close();
});

test("fields restricts what is shown", async () => {
  await aCustomer(sandbox);
  const { data } = await sandbox.ok("GET", "/v1/customers?limit=1&fields[customers]=email,company");
  expect(Object.keys(data[0]).toSorted((a, b) => (a < b ? -1 : 1))).toEqual(["company", "email", "id"]);
});

test("an unknown id is 404", async () => {
  for (const id of [crypto.randomUUID(), "nobody"]) {
    expectRefusal(await sandbox.call("GET", `/v1/customers/${id}`), 404, "resource_not_found");
  }
});

test("metadata is replaced as a whole", async () => {
  const customer = await aCustomer(sandbox);
  const path = `/v1/customers/${customer.id}`;
  await sandbox.ok("PATCH", path, { metadata: { a: 1, b: 2 } });
  expect((await sandbox.ok("PATCH", path, { metadata: { b: 3 } })).metadata).toEqual({ b: 3 });
});

test("a paused subscription blocks the deletion", async () => {
  const customer = await aCustomer(sandbox);
  const { id } = await aSubscription(sandbox, customer);
  const paused = { resource: "subscriptions", id, set: { status: "paused" } };
  await sandbox.control("POST", "/silent", paused);
  const refused = await sandbox.call("DELETE", `/v1/customers/${customer.id}`);
  expectRefusal(refused, 400, "customer_has_active_subscriptions");
});

test("ids filters by several ids, together with the other filters", async () => {
  const [a, b] = [await aCustomer(sandbox), await aCustomer(sandbox)];
  const find = async (query: string): Promise<string[]> =>
    (await sandbox.ok("GET", `/v1/customers?${query}`)).data.map(({ id }: Json) => id);
  const both = await find(`ids=${a.id},${b.id},${crypto.randomUUID()}`);
  expect(new Set(both)).toEqual(new Set([a.id, b.id]));
  expect(await find(`ids=${a.id}&email=${a.email}`)).toEqual([a.id]);
  expect(await find(`ids=${b.id}&email=${a.email}`)).toEqual([]);
  expect(await find("ids=")).toEqual([]);
});
