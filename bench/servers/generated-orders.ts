/**
 * A service with a generated list of orders: pages of 100, newest first, at almost no cost. Its other lists are empty.
 * The second argument is the number of orders.
 */
import { createServer } from "node:http";
import { serve } from "./serve.ts";

const count = Number(process.argv[3]);
const pageSize = 100;
const start = Date.parse("2024-01-01T00:00:00.000Z");

const idOf = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;

function order(n: number): string {
  const at = new Date(start + n * 1_000).toISOString();
  const total = 1_000 + (n % 9_000);
  return (
    `{"id":"${idOf(n)}","order_number":"N${String(n % 10_000_000).padStart(7, "0")}","customer_id":"customer-${n % 997}",` +
    `"status":"succeeded","subtotal":${total},"discount_amount":0,"total":${total},"currency":"usd","description":null,` +
    `"applied_coupon":null,"payment_method":{"id":"card-${n % 997}","card_last_four":"4242","card_brand":"visa"},` +
    `"shipping_address":{"id":"address-${n % 997}","first_name":"Ada","last_name":"Lovelace","address_line1":"1 Main Street",` +
    `"address_line2":null,"city":"Springfield","state":"IL","postal_code":"62701","country":"US","phone":null},` +
    `"metadata":{"cart":"cart-${n}","campaign":"spring"},"failure_code":null,"failure_reason":null,` +
    `"items":[{"product_id":"product-${n % 31}","name":"A product","quantity":2,"price":${total / 2}}],` +
    `"created_at":"${at}","updated_at":"${at}"}`
  );
}

function page(query: URLSearchParams): string {
  const after = query.get("starting_after");
  const newest = after === null ? count - 1 : Number(after.slice(-12)) - 1;
  const size = Math.min(pageSize, Number(query.get("limit") ?? 10));
  const oldest = Math.max(0, newest - size + 1);
  const orders = Array.from({ length: newest - oldest + 1 }, (_, i) => order(newest - i));
  const next = oldest > 0 ? `"${idOf(oldest)}"` : "null";
  return `{"data":[${orders.join(",")}],"url":"/v1/orders","has_more":${oldest > 0},"cursors":{"next":${next}}}`;
}

const empty = `{"data":[],"url":"/v1/list","has_more":false,"cursors":{"next":null}}`;

serve(
  createServer(({ url = "" }, response) => {
    const { pathname, searchParams } = new URL(url, "http://service.test");
    const body = pathname === "/v1/orders" ? page(searchParams) : empty;
    response.writeHead(200, {
      "Content-Type": "application/json",
      "Content-Length": Buffer.byteLength(body),
    });
    response.end(body);
  }),
);
