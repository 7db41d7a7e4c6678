import { cardsOf } from "../operations/cards.ts";
import type { CustomerRecord } from "../records.ts";
import type { Space } from "../space.ts";
import { customerBody, paymentMethodBody } from "./customer.ts";
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
