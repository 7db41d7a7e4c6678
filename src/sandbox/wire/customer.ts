import type { CustomerRecord, PaymentMethodRecord } from "../records.ts";
import type { Space } from "../space.ts";
import { customerAddress } from "./address.ts";

export function customerBody(customer: CustomerRecord): Record<string, unknown> {
  return { ...customer, shipping_address: customerAddress(customer.shipping_address) };
}

export function paymentMethodBody(card: PaymentMethodRecord): Record<string, unknown> {
  const { id, customer_id, is_default, created_at } = card;
  return { id, type: "card", card: card.card, customer_id, is_default, created_at };
}

/** Puts the customer that a record refers to into its body, for `expand=customer`. */
export function embedCustomer(
  space: Pick<Space, "customers">,
  body: Record<string, unknown>,
  customerId: string,
): void {
  const customer = space.customers.get(customerId);
  body.customer = customer === undefined ? null : customerBody(customer);
}
