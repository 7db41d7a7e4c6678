import { cardsOf } from "../operations/cards.ts";
import type { CustomerRecord } from "../records/customer.ts";
import type { Space } from "../space.ts";
import { customerBody } from "./customer.ts";
import { paymentMethodBody } from "./payment-method.ts";
import { subscriptionBody } from "./subscription.ts";

export type CustomerRelation = "payment_methods" | "subscriptions";

export function expandedCustomer(
  space: Space,
  customer: CustomerRecord,
  expand: readonly CustomerRelation[] = [],
): Record<string, unknown> {
  const body = customerBody(customer);
  if (expand.includes("payment_methods")) {
    body.payment_methods = cardsOf(space, customer.id).map(paymentMethodBody);
  }
  if (expand.includes("subscriptions")) {
    const owned = space.subscriptions.inGroup("customer_id", customer.id);
    body.subscriptions = owned.map(subscriptionBody);
  }
  return body;
}
