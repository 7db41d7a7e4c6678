import { type RequestListener, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, expect, test } from "vitest";
import { wallClock } from "../../src/platform/clock.ts";
import { createLog } from "../../src/platform/log.ts";
import { type Transport, createTransport } from "../../src/parts/sandbox/engine/delivery/attempt.ts";
import { createSubscription } from "../../src/parts/sandbox/resources/subscriptions/subscription-operations.ts";
import { createCustomer } from "../../src/parts/sandbox/resources/customers/customer-operations.ts";
import { createWebhookEndpoint } from "../../src/parts/sandbox/resources/webhook-endpoints/webhook-endpoint-routes.ts";
import { createState } from "../../src/parts/sandbox/engine/state.ts";
import { startReceiver } from "./harness.ts";

const transport = createTransport(250);
const closing: (() => void)[] = [];
afterAll(async () => {
  await transport.close();
  for (const close of closing) close();
});

const post = (url: string) => transport.post(url, {}, Buffer.from("{}"));

async function listening(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

test("an answer within the limit counts, one after it does not; the limit is wall time", async () => {
  const prompt = await startReceiver(() => 204);
  expect(await post(prompt.url)).toEqual({ status: 204, error: null });
  let answerLate = () => {};
  const late = await startReceiver(
    () =>
      new Promise((resolve) => {
        answerLate = () => resolve(200);
      }),
  );
  expect(await post(late.url)).toEqual({ status: null, error: "no answer within 0.25 s" });
  answerLate();
  await Promise.all([prompt.close(), late.close()]);
});

test("a status that came in time counts, and a body without end holds nothing up", async () => {
  const url = await listening((_request, response) => {
    response.writeHead(200);
    response.write("never");
  });
  expect(await post(url)).toEqual({ status: 200, error: null });
});

test("a host without an address is looked up once in a move of the clock, and again after it", async () => {
  const looked: string[] = [];
  const patient = createTransport();
  const counting: Transport = {
    close: () => patient.close(),
    post(url, ...sent) {
      looked.push(url);
      return patient.post(url, ...sent);
    },
  };
  const log = createLog({ level: "fatal", name: "test" });
  const state = createState({ wallClock, log, transport: counting, origin: () => "" }, "a year");
  closing.push(() => {
    state.close();
    void counting.close();
  });
  const space = state.spaces.test;
  await state.time.setNow(new Date("2026-03-01T00:00:00Z"));
  const [plan] = space.plans.all();
  const customer = createCustomer(space, {
    email: "ada@example.test",
    svc_gateway_customer_vault_id: "card_visa",
  });
  const [card] = space.paymentMethods.all();
  if (plan === undefined || card === undefined) throw new Error("nothing to subscribe to");
  createSubscription(space, {
    customer,
    plan,
    card,
    billingCycle: { interval: "day", interval_count: 1, anchor_day: null },
    totalCycles: 0,
    endDate: null,
    shippingAddress: null,
    coupon: null,
  });
  for (const url of ["https://gone.invalid/a", "https://gone.invalid/b"]) {
    createWebhookEndpoint(space, { url, enabled_events: ["*"] });
  }
  for (const _ of [1, 2]) {
    looked.length = 0;
    await state.time.advance(100 * 86_400_000 + 1000);
    await state.idle();
    expect(looked).toHaveLength(1);
  }
  const all = state.dispatcher.latest();
  expect(all.length).toBeGreaterThan(2 * 2 * 190);
  expect(all[0]).toMatchObject({ status: "failed" });
  expect(all[0]?.attempts).toHaveLength(10);
  expect(all[0]?.attempts.at(-1)?.at.slice(0, 10)).toBe("2026-03-05");

  looked.length = 0;
  createCustomer(space, { email: "bob@example.test" });
  await state.idle();
  expect(looked.length).toBeGreaterThan(0);
});
