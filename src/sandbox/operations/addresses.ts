import type { AddressRecord } from "../records/customer.ts";
import { notFound, Refusal } from "../refusal.ts";
import type { Space } from "../space.ts";

export interface AddressInput {
  full_name?: string | null | undefined;
  first_name?: string | null | undefined;
  last_name?: string | null | undefined;
  address_line1: string;
  address_line2?: string | null | undefined;
  city: string;
  state: string;
  postal_code: string;
  country: string;
  phone?: string | null | undefined;
}

/** Keeps an address as one of a customer's, under an id of its own. */
export function storeAddress(space: Space, customerId: string, input: AddressInput): AddressRecord {
  const [first_name, last_name] = namesOf(input);
  const record: AddressRecord = {
    id: space.ids.uuid(),
    first_name,
    last_name,
    address_line1: input.address_line1,
    address_line2: input.address_line2 ?? null,
    city: input.city,
    state: input.state,
    postal_code: input.postal_code,
    country: input.country,
    phone: input.phone ?? null,
  };
  space.addresses.set(record.id, { customer_id: customerId, address: record });
  return record;
}

/**
 * The address that an order or subscription of a customer names, or brings along; null when it does neither. One of another
 * customer is unknown.
 */
export function resolveAddress(
  space: Space,
  customerId: string,
  sent: { shipping_address_id?: string | undefined; shipping_address?: AddressInput | undefined },
): AddressRecord | null {
  if (sent.shipping_address_id !== undefined && sent.shipping_address !== undefined) {
    throw new Refusal(
      "invalid_value",
      "Send either shipping_address_id or shipping_address.",
      "shipping_address_id",
    );
  }
  if (sent.shipping_address !== undefined) {
    return storeAddress(space, customerId, sent.shipping_address);
  }
  if (sent.shipping_address_id === undefined) return null;
  const known = space.addresses.get(sent.shipping_address_id);
  if (known?.customer_id !== customerId) throw notFound("address", "shipping_address_id");
  return known.address;
}

function namesOf(input: AddressInput): [string, string] {
  const full = input.full_name?.trim();
  if (full === undefined || full === "") return [input.first_name ?? "", input.last_name ?? ""];
  const lastSpace = full.lastIndexOf(" ");
  return lastSpace < 0 ? [full, ""] : [full.slice(0, lastSpace), full.slice(lastSpace + 1)];
}
