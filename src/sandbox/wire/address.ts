import type { AddressRecord } from "../records/customer.ts";

/** An address as customers show it: one full name (spec, Customer). */
export function customerAddress(address: AddressRecord | null): unknown {
  if (address === null) return null;
  const { first_name, last_name, id, ...place } = address;
  return { id, full_name: `${first_name} ${last_name}`.trim(), ...place };
}
