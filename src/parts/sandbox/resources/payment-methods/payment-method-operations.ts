import { ApiError, invalidValue, notFound } from "../../engine/api-error.ts";
import type { Space } from "../../engine/space.ts";
import type { CustomerRecord } from "../customers/customer.ts";
import { changeSubscription, subscriptionsOf } from "../subscriptions/subscription-operations.ts";
import type { SubscriptionRecord } from "../subscriptions/subscription.ts";
import type { PaymentMethodRecord, VaultedCard } from "./payment-method.ts";
import { testCards } from "./test-cards.ts";

/** Attaches a card. The first one always becomes the default. */
export function addPaymentMethod(
  space: Space,
  customer: CustomerRecord,
  vaulted: VaultedCard,
  options: { setAsDefault: boolean; updateSubscriptions: boolean },
): PaymentMethodRecord {
  if (customer.deleted) {
    throw new ApiError("invalid_state_transition", "A deleted customer cannot get a card.");
  }
  const others = cardsOf(space, customer.id);
  const { billing_id } = vaulted;
  if (billing_id !== null && others.some((other) => other.billing_id === billing_id)) {
    throw new ApiError("resource_already_exists", "The customer already has this card.", "billing_id");
  }
  let card = storeCard(space, { customerId: customer.id, card: vaulted, isDefault: false });
  if (others.length === 0 || options.setAsDefault) card = makeDefault(space, customer, card);
  if (options.updateSubscriptions) {
    for (const subscription of subscriptionsOf(space, customer.id, ["active"])) {
      changeSubscription(space, subscription, { card });
    }
  }
  return card;
}

/** Removes a card. The default card, and a card that a subscription uses, need a replacement. */
export function deletePaymentMethod(
  space: Space,
  customer: CustomerRecord,
  card: PaymentMethodRecord,
  replacementId: string | undefined,
): void {
  const users = subscriptionsOf(space, customer.id, ["active", "paused", "past_due"]).filter(
    (subscription) => subscription.payment_method.id === card.id,
  );
  const replacement = replacementId === undefined ? null : find(space, customer, replacementId);
  if (replacement?.id === card.id) {
    throw invalidValue("replacement_payment_method_id", "must be another payment method");
  }
  if (replacement === null && (card.is_default || users.length > 0)) {
    const message = "The payment method is the default or in use: name a replacement.";
    throw new ApiError("resource_in_use", message, "replacement_payment_method_id");
  }
  if (space.settings().gateway_keeps_cards) {
    throw new ApiError("gateway_delete_failed", "The gateway's vault did not remove the card.");
  }
  if (replacement !== null && card.is_default) makeDefault(space, customer, replacement);
  if (replacement !== null) {
    for (const subscription of users) moveToCard(space, subscription, replacement);
  }
  space.paymentMethods.delete(card.id);
}

/** Moves a subscription to another card, even a past-due one: the card that dunning would charge is removed. */
function moveToCard(space: Space, subscription: SubscriptionRecord, card: PaymentMethodRecord): void {
  const changed: SubscriptionRecord = {
    ...subscription,
    payment_method: card.summary,
    updated_at: space.touch(subscription.updated_at),
  };
  space.subscriptions.replace(changed);
  space.emit("subscription.updated", { kind: "subscription", record: changed });
}

function find(space: Space, customer: CustomerRecord, id: string): PaymentMethodRecord {
  const card = space.paymentMethods.get(id);
  if (card === undefined || card.customer_id !== customer.id) {
    throw notFound("payment method", "replacement_payment_method_id");
  }
  return card;
}

/** Years until a test card expires; the interface asks for any future expiry. */
const expiryYears = 4;

/** A customer's cards, oldest first. */
export function cardsOf(space: Space, customerId: string): PaymentMethodRecord[] {
  return space.paymentMethods.inGroup("customer_id", customerId);
}

/**
 * The card that a customer vault's id names: the newest in the vault. `param` is the field that carried the id. Live
 * keys have no test cards.
 */
export function cardOfCustomerVault(space: Space, id: string, param: string): VaultedCard {
  const newest = space.vault.customers.get(id)?.at(-1);
  const card = newest === undefined ? undefined : space.vault.cards.get(newest);
  return card ?? testCard(space, id, param);
}

/** The card that a billing id of the gateway names. */
export function cardOfBilling(space: Space, id: string, param: string): VaultedCard {
  return space.vault.cards.get(id) ?? testCard(space, id, param);
}

function testCard(space: Space, token: string, param: string): VaultedCard {
  const card = space.mode === "live" ? null : cardLike(space, token);
  if (card === null) throw invalidValue(param, "No such card in the gateway's vault.");
  return card;
}

/** A vaulted card that behaves like a test card; null where no test card has that name. */
export function cardLike(space: Pick<Space, "time">, token: string): VaultedCard | null {
  const card = Object.hasOwn(testCards, token) ? testCards[token] : undefined;
  if (card === undefined) return null;
  const today = space.time.now();
  const month = String(today.getUTCMonth() + 1).padStart(2, "0");
  const exp = `${month}/${today.getUTCFullYear() + expiryYears}`;
  return { behaviour: token, last4: card.last4, brand: card.brand, exp, billing_id: null };
}

/** Stores a card for a customer. The outcome of its charges is decided when it is charged. */
export function storeCard(
  space: Space,
  input: { customerId: string; card: VaultedCard; isDefault: boolean },
): PaymentMethodRecord {
  const { customerId, isDefault } = input;
  const { behaviour, last4, brand, exp, billing_id } = input.card;
  const id = space.ids.uuid();
  const record: PaymentMethodRecord = {
    id,
    customer_id: customerId,
    card: { last4, brand, exp },
    is_default: isDefault,
    created_at: space.time.iso(),
    summary: { id, card_last_four: last4, card_brand: brand },
    token: behaviour,
    billing_id,
    used: { charges: 0, refunds: 0 },
  };
  space.paymentMethods.insert(record);
  return record;
}

/** Makes a stored card the only default of its customer and announces the customer's change. */
function makeDefault(space: Space, customer: CustomerRecord, card: PaymentMethodRecord): PaymentMethodRecord {
  for (const other of cardsOf(space, customer.id)) {
    if (other.is_default && other.id !== card.id) {
      space.paymentMethods.replace({ ...other, is_default: false });
    }
  }
  const current = { ...card, is_default: true };
  space.paymentMethods.replace(current);
  if (customer.default_payment_method_id !== card.id) {
    const changed: CustomerRecord = {
      ...customer,
      default_payment_method_id: card.id,
      updated_at: space.touch(customer.updated_at),
    };
    space.customers.replace(changed);
    space.emit("customer.updated", { kind: "customer", record: changed });
  }
  return current;
}
