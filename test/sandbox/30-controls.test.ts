import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import { testKey } from "../../src/parts/sandbox/engine/keys.ts";
import { eventually } from "../support/eventually.ts";
import {
  type Json,
  aCustomer,
  aSubscription,
  anOrder,
  expectRefusal,
  register,
  startReceiver,
  startTestSandbox,
} from "./harness.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();

test("take no API key", async () => {
  const headers = { authorization: `Bearer ${testKey}` };
  const response = await fetch(`${sandbox.url}/_sandbox`, { headers });
  expect(response.status).toBe(403);
});

test("there is no event list on /v1", async () => {
  expectRefusal(await sandbox.call("GET", "/v1/events"), 404, "resource_not_found");
});

test("controls are apart from the API", async () => {
  const called = await sandbox.tryControl("GET", "/nothing");
  expect(called.status).toBe(404);
  const foreign = await fetch(`${sandbox.url}/v1/_sandbox`);
  expect(foreign.status).toBe(404);
});

test("plans of every kind can be made; the API reads them", async () => {
  const [product] = (await sandbox.ok("GET", "/v1/products?limit=1")).data;
  const plan = await sandbox.control("POST", "/plans", {
    name: "Fortnightly",
    amount: 700,
    one_time_amount: 100,
    currency: "eur",
    billing_cycle: { interval: "day", interval_count: 14 },
    billing_cycles: 3,
    products: [{ id: product.id }],
  });
  expect(await sandbox.ok("GET", `/v1/plans/${plan.id}`)).toEqual(plan);
  const bad = await sandbox.tryControl("POST", "/plans", { name: "x", amount: -1 });
  expect(bad.status).toBe(400);
});

test("jobs do what is due, once; the clock did it already", async () => {
  const own = await startTestSandbox();
  await own.control("POST", "/clock", { now: "2026-03-01T00:00:00Z" });
  const { id } = await aSubscription(own, await aCustomer(own));
  expect(await own.control("POST", "/jobs/billing")).toMatchObject({ job: "billing", ran: 0 });
  await own.control("POST", "/silent", {
    resource: "subscriptions",
    id,
    set: { next_billing_date: "2026-03-01T00:00:00.000Z" },
  });
  for (let i = 0; i < 2; i++) await own.control("POST", "/jobs/billing");
  expect((await own.ok("GET", `/v1/subscriptions/${id}`)).current_billing_cycle).toBe(2);
  for (const job of ["dunning", "settlement"]) {
    expect(await own.control("POST", `/jobs/${job}`)).toMatchObject({ job, ran: 0 });
  }
  await own.close();
});

test("a snapshot is restored exactly, and the same future follows", async () => {
  const own = await startTestSandbox();
  await own.control("POST", "/clock", { now: "2026-03-01T00:00:00Z" });
  await own.control("POST", "/merchants", {});
  await own.control("POST", "/traffic", { orders: 60, subscriptions: 8, seed: 1 });
  const { wall_ms: _wall, ...saved } = (await own.control("GET", "/snapshot")).state.clock;
  const before = await own.control("GET", "/snapshot");
  const play = async () => {
    const body = { orders: 20, subscriptions: 3, seed: 2 };
    await own.control("POST", "/traffic", body);
    return (await own.control("GET", "/snapshot")).orders;
  };
  const future = await play();
  await own.control("PUT", "/snapshot", before);
  const after = await own.control("GET", "/snapshot");
  expect(after.state.clock).toMatchObject(saved);
  for (const each of [before, after]) delete each.state.clock;
  expect(after).toEqual(before);
  expect(await play()).toEqual(future);
  await own.close();
});

test("idempotency keys, secrets and waiting retries are part of a snapshot", async () => {
  const own = await startTestSandbox();
  let status = 500;
  const receiver = await startReceiver(() => status);
  await register(own, receiver.url);
  const idempotency = crypto.randomUUID();
  const body = { name: "kept", pricing: { amount: 1, currency: "usd" } };
  const product = await own.ok("POST", "/v1/products", body, { idempotency });
  await aCustomer(own);
  await own.control("GET", "/idle");
  const snapshot = await own.control("GET", "/snapshot");
  await own.control("POST", "/reset", { seed: "other" });
  await own.control("PUT", "/snapshot", snapshot);
  expect(await own.ok("POST", "/v1/products", body, { idempotency })).toEqual(product);
  status = 200;
  await own.control("POST", "/clock", { advance_seconds: 10 });
  expect(receiver.received).toHaveLength(2);
  expect(receiver.received[1]?.raw.equals(receiver.received[0]?.raw ?? Buffer.alloc(0))).toBe(true);
  await own.close();
  await receiver.close();
});

test("what is no snapshot is refused and changes nothing", async () => {
  const before = (await sandbox.control("GET", "")).counts;
  const { state: dump } = await sandbox.control("GET", "/snapshot");
  const broken = structuredClone(dump);
  broken.merchants.merchant_1.spaces.test.tables.orders = [
    { id: "x", created_at: "2026-01-01T00:00:00.000Z", transactions: ["nowhere"] },
  ];
  for (const body of [{}, { state: {} }, { state: { ...dump, format: 99 } }, { state: broken }]) {
    const called = await sandbox.tryControl("PUT", "/snapshot", body);
    expect(called.status).toBe(400);
  }
  expect((await sandbox.control("GET", "")).counts).toEqual(before);
});

test("a state file outlives the sandbox, and one that does not add up stops the start", async () => {
  const directory = mkdtempSync(join(tmpdir(), "sandbox-state-"));
  const stateFile = join(directory, "state.json");
  const first = await startTestSandbox(1, { stateFile });
  const order = await anOrder(first, await aCustomer(first));
  await first.control("POST", "/clock", { advance_seconds: 86_400 });
  const { now } = (await first.control("GET", "")).clock;
  await first.close();
  const second = await startTestSandbox(2, { stateFile });
  expect(await second.ok("GET", `/v1/orders/${order.id}`)).toEqual(order);
  const { clock, seed } = await second.control("GET", "");
  expect(seed).toBe("1");
  expect(Date.parse(clock.now)).toBeGreaterThanOrEqual(Date.parse(now));
  await second.close();
  const broken = JSON.parse(readFileSync(stateFile, "utf8"));
  broken.merchants.merchant_1.spaces.test.tables.transactions = [];
  const text = JSON.stringify(broken);
  writeFileSync(stateFile, text);
  await expect(startTestSandbox(1, { stateFile })).rejects.toThrow(/ is not one of this sandbox/);
  expect(readFileSync(stateFile, "utf8")).toBe(text);
  const nowhere = { stateFile: join(directory, "missing", "state.json") };
  await expect(startTestSandbox(1, nowhere)).rejects.toThrow(/ cannot be written/);
  rmSync(directory, { recursive: true });
});

test("after kill -9 a state file holds all but the last moment", async () => {
  const directory = mkdtempSync(join(tmpdir(), "sandbox-state-"));
  const stateFile = join(directory, "state.json");
  const program = [inject("program"), "sandbox", "--port", "0", "--state", stateFile];
  const child = spawn(process.execPath, program, { stdio: ["ignore", "pipe", "inherit"] });
  const [printed] = (await once(child.stdout, "data")) as [Buffer];
  const url = /http:\/\/127\.0\.0\.1:\d+/.exec(printed.toString())?.[0];
  const response = await fetch(`${url}/v1/customers`, {
    method: "POST",
    headers: { authorization: `Bearer ${testKey}`, "content-type": "application/json" },
    body: JSON.stringify({ email: "killed@example.test" }),
  });
  const customer: Json = await response.json();
  await eventually("the customer is on disk", () => readFileSync(stateFile, "utf8").includes(customer.id));
  child.kill("SIGKILL");
  await once(child, "exit");
  const next = await startTestSandbox(1, { stateFile });
  expect((await next.ok("GET", `/v1/customers/${customer.id}`)).email).toBe("killed@example.test");
  await next.close();
  rmSync(directory, { recursive: true });
});

test("chargebacks, voids, failing refunds and silent changes can be caused", async () => {
  const customer = await aCustomer(sandbox);
  const moved = async (...moves: string[]) => {
    const { id } = await anOrder(sandbox, customer);
    for (const move of moves) await sandbox.control("POST", `/orders/${id}/${move}`);
    return (await sandbox.ok("GET", `/v1/orders/${id}`)).status as string;
  };
  expect(await moved("chargeback")).toBe("chargeback");
  expect(await moved("chargeback", "chargeback_accept")).toBe("chargeback_accepted");
  expect(await moved("chargeback", "chargeback_dismiss")).toBe("chargeback_dismissed");
  expect(await moved("void")).toBe("voided");
  const failing = await anOrder(sandbox, await aCustomer(sandbox, "card_refund_failed_once"));
  const refund = await sandbox.ok("POST", `/v1/orders/${failing.id}/refund`, {});
  expect(refund.status).toBe("refund_failed");
  const before = (await sandbox.control("GET", "")).events;
  const set = { description: "changed behind everybody's back" };
  await sandbox.control("POST", "/silent", { resource: "orders", id: failing.id, set });
  expect(await sandbox.ok("GET", `/v1/orders/${failing.id}`)).toMatchObject(set);
  expect((await sandbox.control("GET", "")).events).toBe(before);
});

test("a silent change moves a subscription to another plan, by which its next cycle is billed", async () => {
  const own = await startTestSandbox();
  const subscription = await aSubscription(own, await aCustomer(own));
  const { data } = (await own.ok("GET", "/v1/plans?limit=100")) as { data: { id: string }[] };
  const other = data.find(({ id }) => id !== subscription.plan.id);
  const move = (plan_id: string) =>
    own.tryControl("POST", "/silent", {
      resource: "subscriptions",
      id: subscription.id,
      set: { plan_id },
    });
  expect((await move("unknown")).status).toBe(404);
  await move(other?.id ?? "");
  await own.control("POST", "/clock", { advance_seconds: 31 * 86_400 });
  const { plan } = await own.ok("GET", `/v1/subscriptions/${subscription.id}`);
  expect(plan).toMatchObject({ id: other?.id });
  const orders = await own.ok("GET", "/v1/orders?limit=1");
  expect(orders.data[0].total).toBe(plan.amount);
  await own.close();
});

test("the clock refuses jumps that its jobs could not follow, and ends with the year 9999", async () => {
  const fresh = await startTestSandbox();
  const moveTo = (now: string) => fresh.tryControl("POST", "/clock", { now });
  expect((await moveTo("2400-01-01T00:00:00Z")).status).toBe(200);
  await aSubscription(fresh, await aCustomer(fresh));
  expectRefusal(await moveTo("2510-01-01T00:00:00Z"), 400, "invalid_value", "now");
  await fresh.ok("GET", "/v1/orders");
  expect((await moveTo("2026-01-01T00:00:00Z")).status).toBe(200);
  await fresh.control("POST", "/reset", {});
  expect((await moveTo("9999-12-31T23:59:59Z")).status).toBe(200);
  const beyond = await fresh.tryControl("POST", "/clock", { advance_seconds: 1 });
  expectRefusal(beyond, 400, "invalid_value", "now");
  await fresh.close();
});

test("controls are refused through a proxy and under a foreign name", async () => {
  const { port } = new URL(sandbox.url);
  const ask = (headers: Record<string, string>) =>
    new Promise<number | undefined>((resolve, reject) => {
      request({ host: "127.0.0.1", port, path: "/_sandbox", headers }, (response) => {
        response.resume();
        resolve(response.statusCode);
      })
        .on("error", reject)
        .end();
    });
  expect(await ask({})).toBe(200);
  expect(await ask({ host: "localhost" })).toBe(200);
  expect(await ask({ host: "attacker.example" })).toBe(403);
  expect(await ask({ "x-forwarded-for": "203.0.113.9" })).toBe(403);
  expect(await ask({ forwarded: "for=203.0.113.9" })).toBe(403);
});
