import type { AddressRecord } from "../records.ts";
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

export function storeAddress(space: Space, input: AddressInput): AddressRecord {
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
  space.addresses.set(record.id, record);
  return record;
}

/** The address that an order or subscription names, or brings along; null when it does neither. */
export function resolveAddress(
  space: Space,
  sent: { shipping_address_id?: string | undefined; shipping_address?: AddressInput | undefined },
): AddressRecord | null {
  if (sent.shipping_address_id !== undefined && sent.shipping_address !== undefined) {
    throw new Refusal(
      "invalid_value",
      "Send either shipping_address_id or shipping_address.",
      "shipping_address_id",
    );
  }
  if (sent.shipping_address !== undefined) return storeAddress(space, sent.shipping_address);
  if (sent.shipping_address_id === undefined) return null;
  const address = space.addresses.get(sent.shipping_address_id);
  if (address === undefined) throw notFound("address", "shipping_address_id");
  return address;
}

function namesOf(input: AddressInput): [string, string] {
  const full = input.full_name?.trim();
  if (full === undefined || full === "") return [input.first_name ?? "", input.last_name ?? ""];
  const lastSpace = full.lastIndexOf(" ");
  return lastSpace < 0 ? [full, ""] : [full.slice(0, lastSpace), full.slice(lastSpace + 1)];
}
