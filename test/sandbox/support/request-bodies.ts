import { type Json, type TestSandbox, aPlan, productsOf } from "../harness.ts";

/** What `POST /orders` takes: one of the first product, with the customer's default card. */
export async function orderBody(sandbox: TestSandbox, customer: Json): Promise<Json> {
  const [product] = await productsOf(sandbox);
  return {
    customer_id: customer.id,
    payment_method_id: customer.default_payment_method_id,
    items: [{ product_id: product.id, quantity: 1 }],
  };
}

/** What `POST /subscriptions` takes: the monthly box, with the customer's default card. */
export async function subscriptionBody(sandbox: TestSandbox, customer: Json): Promise<Json> {
  const plan = await aPlan(sandbox, "box-monthly-usd");
  return {
    customer_id: customer.id,
    plan_id: plan.id,
    payment_method_id: customer.default_payment_method_id,
    billing_cycle: { interval: "month", interval_count: 1 },
  };
}

/** The charges of a subscription, for which lists have no filter. */
export async function ordersOf(sandbox: TestSandbox, subscriptionId: string): Promise<Json[]> {
  const { orders } = await sandbox.control("GET", "/snapshot");
  return orders.filter((order: Json) => order.subscription_id === subscriptionId);
}
