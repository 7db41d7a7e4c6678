import type { CustomerRecord } from "../records/customer.ts";
import type { Table } from "../store/table.ts";
import { customerAddress } from "./address.ts";

export function customerBody(customer: CustomerRecord): Record<string, unknown> {
  return { ...customer, shipping_address: customerAddress(customer.shipping_address) };
}

export interface WithCustomers {
  readonly customers: Pick<Table<CustomerRecord>, "get">;
}

/** Puts the customer that a record refers to into its body, for `expand=customer`. */
export function embedCustomer(
  space: WithCustomers,
  body: Record<string, unknown>,
  customerId: string,
): void {
  const customer = space.customers.get(customerId);
  body.customer = customer === undefined ? null : customerBody(customer);
}
