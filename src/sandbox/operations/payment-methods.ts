import type { CustomerRecord } from "../records/customer.ts";
import type { PaymentMethodRecord } from "../records/payment-method.ts";
import type { SubscriptionRecord } from "../records/subscription.ts";
import { invalidValue, notFound, Refusal } from "../refusal.ts";
import type { Space } from "../space.ts";
import type { VaultedCard } from "../store/vault.ts";
import { cardsOf, makeDefault, storeCard } from "./cards.ts";
import { changeSubscription, subscriptionsOf } from "./change-subscription.ts";

/** Attaches a card. The first one becomes the default also without being asked for (statement 203). */
export function addPaymentMethod(
  space: Space,
  customer: CustomerRecord,
  vaulted: VaultedCard,
  options: { setAsDefault: boolean; updateSubscriptions: boolean },
): PaymentMethodRecord {
  if (customer.deleted) {
    throw new Refusal("invalid_state_transition", "A deleted customer cannot get a card.");
  }
  const others = cardsOf(space, customer.id);
  const { billing_id } = vaulted;
  if (billing_id !== null && others.some((other) => other.billing_id === billing_id)) {
    throw new Refusal("resource_already_exists", "The customer has this card.", "billing_id");
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

/** Removes a card. One that is the default or that a subscription uses needs another in its place (spec, DELETE). */
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
    throw new Refusal("resource_in_use", message, "replacement_payment_method_id");
  }
  if (space.settings().gateway_keeps_cards) {
    throw new Refusal("gateway_delete_failed", "The gateway's vault did not remove the card.");
  }
  if (replacement !== null && card.is_default) makeDefault(space, customer, replacement);
  if (replacement !== null) {
    for (const subscription of users) moveToCard(space, subscription, replacement);
  }
  space.paymentMethods.delete(card.id);
}

/** Also what is past due: the card that dunning would charge is going. */
function moveToCard(
  space: Space,
  subscription: SubscriptionRecord,
  card: PaymentMethodRecord,
): void {
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
