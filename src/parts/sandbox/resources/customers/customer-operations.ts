import { ApiError, notFound } from "../../engine/api-error.ts";
import type { Space } from "../../engine/space.ts";
import type { Metadata } from "../../engine/store/table.ts";
import { assertGateway } from "../payment-methods/card-gateway.ts";
import { cardOfCustomerVault, cardsOf, storeCard } from "../payment-methods/payment-method-operations.ts";
import type { VaultedCard } from "../payment-methods/payment-method.ts";
import { cancelSubscription, subscriptionsOf } from "../subscriptions/subscription-operations.ts";
import type { AddressRecord, CustomerRecord } from "./customer.ts";

export interface CustomerInput {
  email?: string | undefined;
  first_name?: string | null | undefined;
  last_name?: string | null | undefined;
  phone?: string | null | undefined;
  company?: string | null | undefined;
  shipping_address?: AddressInput | null | undefined;
  metadata?: Metadata | undefined;
  svc_gateway_customer_vault_id?: string | undefined;
}

const vaultField = "svc_gateway_customer_vault_id";

/** Creates a customer, with a card of the vault as default when the request names one. All or nothing. */
export function createCustomer(space: Space, input: CustomerInput & { email: string }): CustomerRecord {
  assertUnused(space, input, null);
  const vaulted = vaultedCard(space, input);
  const id = space.ids.uuid();
  const address = input.shipping_address ?? null;
  const at = space.time.iso();
  const card = vaulted === null ? null : storeCard(space, { customerId: id, card: vaulted, isDefault: true });
  const customer: CustomerRecord = {
    id,
    email: input.email,
    first_name: input.first_name ?? null,
    last_name: input.last_name ?? null,
    phone: input.phone ?? null,
    company: input.company ?? null,
    shipping_address: address === null ? null : storeAddress(space, id, address),
    metadata: input.metadata ?? {},
    default_payment_method_id: card?.id ?? null,
    deleted: false,
    created_at: at,
    updated_at: at,
  };
  space.customers.insert(customer);
  claimContacts(space, customer);
  space.emit("customer.created", { kind: "customer", record: customer });
  return customer;
}

/** Changes the fields that were sent; an empty request changes nothing. Refused for a deleted customer. */
export function updateCustomer(space: Space, customer: CustomerRecord, input: CustomerInput): CustomerRecord {
  if (customer.deleted) {
    throw new ApiError("invalid_state_transition", "A deleted customer cannot be changed.");
  }
  assertUnused(space, input, customer.id);
  const vaulted = vaultedCard(space, input);
  const { shipping_address, svc_gateway_customer_vault_id: _token, ...sent } = input;
  const fields = Object.fromEntries(Object.entries(sent).filter(([, value]) => value !== undefined));
  if (Object.keys(fields).length === 0 && shipping_address === undefined && vaulted === null) {
    return customer;
  }
  const address =
    shipping_address === undefined
      ? {}
      : {
          shipping_address: shipping_address === null ? null : storeAddress(space, customer.id, shipping_address),
        };
  const changed: CustomerRecord = {
    ...customer,
    ...fields,
    ...address,
    ...(vaulted === null ? {} : { default_payment_method_id: replaceDefault(space, customer, vaulted) }),
    updated_at: space.touch(customer.updated_at),
  };
  moveContacts(space, customer, changed);
  space.customers.replace(changed);
  space.emit("customer.updated", { kind: "customer", record: changed });
  return changed;
}

/** The vaulted card that the request names, or null. */
function vaultedCard(space: Space, input: CustomerInput): VaultedCard | null {
  const id = input.svc_gateway_customer_vault_id;
  if (id === undefined) return null;
  assertGateway(space);
  return cardOfCustomerVault(space, id, vaultField);
}

function replaceDefault(space: Space, customer: CustomerRecord, vaulted: VaultedCard): string {
  for (const card of cardsOf(space, customer.id)) {
    if (card.is_default) space.paymentMethods.replace({ ...card, is_default: false });
  }
  return storeCard(space, { customerId: customer.id, card: vaulted, isDefault: true }).id;
}

/**
 * Deletes a customer: softly when there are orders, hard when there are none. Idempotent. A soft deletion cancels
 * past-due subscriptions, so that a deleted customer is never billed.
 */
export function deleteCustomer(space: Space, customer: CustomerRecord): void {
  if (customer.deleted) return;
  if (subscriptionsOf(space, customer.id, ["active", "paused"]).length > 0) {
    throw new ApiError("customer_has_active_subscriptions", "The customer has active or paused subscriptions.");
  }
  for (const subscription of subscriptionsOf(space, customer.id, ["past_due"])) {
    cancelSubscription(space, subscription);
  }
  const deleted: CustomerRecord = {
    ...customer,
    deleted: true,
    updated_at: space.touch(customer.updated_at),
  };
  if (space.orders.inGroup("customer_id", customer.id).length === 0) {
    for (const card of cardsOf(space, customer.id)) space.paymentMethods.delete(card.id);
    releaseContacts(space, customer);
    space.customers.delete(customer.id);
    space.hardDeleted.customers.push(customer.id);
  } else {
    // E-mail address and phone stay taken: the record with its history still exists.
    space.customers.replace(deleted);
  }
  space.emit("customer.deleted", { kind: "customer", record: deleted });
}

function assertUnused(space: Space, input: CustomerInput, ownId: string | null): void {
  const { email, phone } = input;
  const emailOwner = email === undefined ? undefined : space.emails.get(email.toLowerCase());
  if (emailOwner !== undefined && emailOwner !== ownId) {
    throw new ApiError("email_already_exists", "Another customer has this e-mail address.", "email");
  }
  const phoneOwner = typeof phone === "string" ? space.phones.get(phone) : undefined;
  if (phoneOwner !== undefined && phoneOwner !== ownId) {
    throw new ApiError("phone_already_exists", "Another customer has this phone number.", "phone");
  }
}

/** Updates the lookups of e-mail address and phone of a changed customer, which frees the old ones. */
export function moveContacts(space: Space, before: CustomerRecord, after: CustomerRecord): void {
  releaseContacts(space, before);
  claimContacts(space, after);
}

function claimContacts(space: Space, customer: CustomerRecord): void {
  space.emails.set(customer.email.toLowerCase(), customer.id);
  if (customer.phone !== null) space.phones.set(customer.phone, customer.id);
}

function releaseContacts(space: Space, customer: CustomerRecord): void {
  space.emails.delete(customer.email.toLowerCase());
  if (customer.phone !== null) space.phones.delete(customer.phone);
}

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

/** Stores an address of a customer under an id of its own. */
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
 * The address that an order or subscription names by id or carries inline; null when it has neither. An address of
 * another customer is unknown.
 */
export function resolveAddress(
  space: Space,
  customerId: string,
  sent: { shipping_address_id?: string | undefined; shipping_address?: AddressInput | undefined },
): AddressRecord | null {
  if (sent.shipping_address_id !== undefined && sent.shipping_address !== undefined) {
    throw new ApiError("invalid_value", "Send either shipping_address_id or shipping_address.", "shipping_address_id");
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
