import { cardsOf } from "../operations/cards.ts";
import { assertGateway } from "../operations/gateway.ts";
import type { CustomerRecord } from "../records/customer.ts";
import type { PaymentMethodRecord } from "../records/payment-method.ts";
import { invalidValue, notFound, Refusal } from "../refusal.ts";
import type { Space } from "../space.ts";
import type { State } from "../state.ts";
import { find } from "./find.ts";

/** Who pays, and with which card: the checks that orders and subscriptions share (spec, `POST /orders`). */
export function chargeParties(
  state: State,
  space: Space,
  sent: { customer_id: string; payment_method_id: string },
): { customer: CustomerRecord; card: PaymentMethodRecord } {
  const customer = find(state, space, "customers", sent.customer_id, "customer_id");
  if (customer.deleted) throw invalidValue("customer_id", "The customer is deleted.");
  if (cardsOf(space, customer.id).length === 0) {
    const message = "The customer has no card on file.";
    throw new Refusal("customer_not_configured", message, "customer_id");
  }
  assertGateway(space);
  if (space.settings().card_replacement_required) {
    const message = "The card must be captured again.";
    throw new Refusal("replacement_required", message, "payment_method_id");
  }
  return { customer, card: cardOf(state, space, customer.id, sent.payment_method_id) };
}

/** A card of a customer; one of somebody else is unknown. */
export function cardOf(
  state: State,
  space: Space,
  customerId: string,
  cardId: string,
): PaymentMethodRecord {
  const card = find(state, space, "paymentMethods", cardId, "payment_method_id");
  if (card.customer_id !== customerId) throw notFound("payment method", "payment_method_id");
  return card;
}
