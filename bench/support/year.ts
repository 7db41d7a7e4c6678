import { hash } from "node:crypto";

/** The year of the orders in a filled database. Sample events are dated later, so that they change existing rows. */
export const filledYear = 2024;
export const yearStart = `${filledYear}-01-01`;

/** The seed of the ids in a filled database. */
export const fillSeed = "grown";

/** The whole milliseconds between two of so many orders. */
export const orderStepMs = (orders: number): number => Math.floor((365 * 86_400_000) / orders);

/** An id as `idSql` of fill-year.ts makes it. */
export function yearId(kind: string, n: number): string {
  const hex = hash("md5", `${fillSeed}:${kind}:${n}`);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
}

function statusOf(n: number): string {
  const share = n % 200;
  if (share < 12) return "failed";
  if (share < 30) return "refunded";
  if (share < 36) return "partially_refunded";
  return lastStatuses[share - 36] ?? "succeeded";
}

const lastStatuses = ["chargeback", "chargeback_accepted", "chargeback_dismissed"];

/** Order `n`, from 1 on, of a year of `count`, as the service shows it: JSON. fill-year.ts writes the same in SQL. */
export function yearOrder(count: number, n: number, id = yearId("order", n)): string {
  const at = new Date(Date.parse(yearStart) + n * orderStepMs(count)).toISOString();
  const total = 500 + ((n * 7_919) % 20_000);
  const card = yearId("card", n);
  const status = statusOf(n);
  const currency = n % 5 === 0 ? "eur" : n % 5 === 1 ? "jpy" : "usd";
  const renewal =
    n % 4 === 0 ? `"subscription_id":"${yearId("subscription", n % (count / 20))}","subscription_cycle":2,` : "";
  return (
    `{"id":"${id}","order_number":"${String(n).padStart(8, "0")}","customer_id":"${yearId("customer", n % (count / 4))}",` +
    `"status":"${status}","subtotal":${total},"discount_amount":0,"total":${total},"currency":"${currency}","description":null,` +
    `"applied_coupon":null,"payment_method":{"id":"${card}","card_last_four":"4242","card_brand":"${n % 3 === 0 ? "mastercard" : "visa"}"},` +
    `"shipping_address":{"id":"${card}","first_name":"Ada","last_name":"Beispiel","address_line1":"12 Harbour Street",` +
    `"address_line2":null,"city":"Portland","state":"OR","postal_code":"97201","country":"US","phone":null},${renewal}` +
    `"metadata":{"source":"checkout"},"failure_code":${status === "failed" ? '"insufficient_funds"' : "null"},"failure_reason":null,` +
    `"items":[${item(card, 1)},${item(card, 2)}],"created_at":"${at}","updated_at":"${at}"}`
  );
}

const item = (card: string, line: number): string =>
  `{"id":"${card}-${line}","product_id":"product-${line}","name":"Ethiopia, 250 g, whole beans","quantity":${line},` +
  `"price":1700,"total":${1_700 * line}}`;
