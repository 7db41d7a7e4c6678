import { createState } from "../../src/sandbox/state.ts";
import { createLog } from "../../src/platform/log.ts";
import { wallClock } from "../../src/platform/clock.ts";
import { createCustomer } from "../../src/sandbox/operations/customers.ts";
import { cardsOf } from "../../src/sandbox/operations/cards.ts";
import { createOrder } from "../../src/sandbox/operations/create-order.ts";
import { answerWith } from "../../src/sandbox/answer.ts";
import { orderBody } from "../../src/sandbox/wire/order.ts";
import { randomUUID, hash } from "node:crypto";
const state = createState({ wallClock, log: createLog({ level: "warn", name: "m" }), transport: { post: async () => ({ status: 200, error: null }), close: async () => {} } }, "1");
const space = state.spaces.test;
const customers = Array.from({ length: 5000 }, (_, i) => createCustomer(space, { email: `a${i}@example.test`, svc_gateway_customer_vault_id: "card_visa" }));
const cards = customers.map((c) => cardsOf(space, c.id)[0]!);
const p = space.products.all()[0]!;
const N = Number(process.argv[2] ?? 200000);
globalThis.gc!(); const before = process.memoryUsage().heapUsed;
const t = performance.now();
for (let i = 0; i < N; i++) {
  const key = randomUUID() + " POST /v1/orders";
  const body = { a: i };
  space.idempotency.begin(key, hash("sha1", JSON.stringify(body), "base64"), space.time.nowMs());
  const order = createOrder(space, { customerId: customers[i % 5000]!.id, card: cards[i % 5000]!, items: [{ product_id: p.id, name: p.name, quantity: 1, price: p.pricing.amount }], price: { subtotal: 1250, discount_amount: 0, total: 1250 }, currency: "usd", description: null, shippingAddress: null, metadata: {} });
  space.idempotency.finish(key, answerWith(201, order, orderBody));
}
console.log("µs/order", ((performance.now() - t) * 1000 / N).toFixed(1));
globalThis.gc!(); console.log("bytes/order", (process.memoryUsage().heapUsed - before) / N);
state.close();
