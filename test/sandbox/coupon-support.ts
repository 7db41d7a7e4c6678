import type { Called, Json, TestSandbox } from "./harness.ts";

let names = 0;

/** A coupon of 10 % that holds once, unless the terms say otherwise. */
export function couponTerms(terms: Record<string, unknown> = {}): Record<string, unknown> {
  names += 1;
  const discount = "amount" in terms ? {} : { percentage: 10 };
  return { name: `Coupon ${names}`, duration: "once", ...discount, ...terms };
}

/** A promo coupon; `code` is what its customers type. */
export async function aPromo(sandbox: TestSandbox, terms: Record<string, unknown> = {}): Promise<Json> {
  const coupon = await sandbox.ok("POST", "/v1/coupons", {
    kind: "promo",
    ...couponTerms(terms),
  });
  return { ...coupon, code: coupon.codes[0].code };
}

/** A generated coupon with as many codes as asked for. */
export async function aGenerated(
  sandbox: TestSandbox,
  count: number,
  terms: Record<string, unknown> = {},
): Promise<Json> {
  const block = count === 0 ? {} : { codes: { count } };
  return sandbox.ok("POST", "/v1/coupons", { ...couponTerms(terms), ...block });
}

/** A product of a price, so that a discount can be told to the cent. */
export async function aProduct(sandbox: TestSandbox, amount: number, currency = "usd"): Promise<Json> {
  return sandbox.ok("POST", "/v1/products", { name: "Tea", pricing: { amount, currency } });
}

/** Orders one of each product with a code. */
export function orderWith(
  sandbox: TestSandbox,
  customer: Json,
  products: Json[],
  coupon_code: string,
): Promise<Called> {
  return sandbox.call("POST", "/v1/orders", {
    customer_id: customer.id,
    payment_method_id: customer.default_payment_method_id,
    items: products.map(({ id }) => ({ product_id: id, quantity: 1 })),
    coupon_code,
  });
}

/** How often a coupon was redeemed. */
export async function redemptionsOf(sandbox: TestSandbox, coupon: Json): Promise<number> {
  return (await sandbox.ok("GET", `/v1/coupons/${coupon.id}`)).redemption_count;
}

export async function ordersOf(sandbox: TestSandbox, customer: Json): Promise<Json[]> {
  return (await sandbox.ok("GET", `/v1/orders?customer_id=${customer.id}&limit=100`)).data;
}
