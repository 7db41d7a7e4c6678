import type { Metadata, Table } from "../../engine/store/table.ts";

export interface AddressRecord {
  readonly id: string;
  readonly first_name: string;
  readonly last_name: string;
  readonly address_line1: string;
  readonly address_line2: string | null;
  readonly city: string;
  readonly state: string;
  readonly postal_code: string;
  readonly country: string;
  readonly phone: string | null;
}

export interface CustomerRecord {
  readonly id: string;
  readonly email: string;
  readonly first_name: string | null;
  readonly last_name: string | null;
  readonly phone: string | null;
  readonly company: string | null;
  readonly shipping_address: AddressRecord | null;
  readonly metadata: Metadata;
  readonly default_payment_method_id: string | null;
  readonly deleted: boolean;
  readonly created_at: string;
  readonly updated_at: string;
}

export function customerBody(customer: CustomerRecord): Record<string, unknown> {
  return { ...customer, shipping_address: customerAddress(customer.shipping_address) };
}

export interface WithCustomers {
  readonly customers: Pick<Table<CustomerRecord>, "get">;
}

/** Embeds the customer of a record in its body, for `expand=customer`. */
export function embedCustomer(space: WithCustomers, body: Record<string, unknown>, customerId: string): void {
  const customer = space.customers.get(customerId);
  body.customer = customer === undefined ? null : customerBody(customer);
}

/** An address as customers show it, with one full name. */
function customerAddress(address: AddressRecord | null): unknown {
  if (address === null) return null;
  const { first_name, last_name, id, ...place } = address;
  return { id, full_name: `${first_name} ${last_name}`.trim(), ...place };
}
