import * as routes from "../../service/routes/payment-methods.ts";
import { answerWith, plainAnswer } from "../answer.ts";
import type { Mounted } from "../http/mount.ts";
import { mounted } from "../http/mount.ts";
import { cardOfBilling } from "../operations/cards.ts";
import { assertBillingDetails, assertGateway } from "../operations/gateway.ts";
import { addPaymentMethod, deletePaymentMethod } from "../operations/payment-methods.ts";
import { notFound, Refusal } from "../refusal.ts";
import type { Space } from "../space.ts";
import type { VaultedCard } from "../store/vault.ts";
import { paymentMethodBody } from "../wire/payment-method.ts";
import { find } from "./find.ts";

const addCard = mounted(routes.addPaymentMethod, (space, { params, body }, state) => {
  const customer = find(state, space, "customers", params.id);
  assertGateway(space);
  const vaulted = cardSent(space, body);
  assertBillingDetails(space, body.billing_details);
  const card = addPaymentMethod(space, customer, vaulted, {
    setAsDefault: body.set_as_default,
    updateSubscriptions: body.update_subscriptions,
  });
  // A token is used up only once its card is stored.
  if (body.card_token !== undefined) space.vault.cardTokens.use(body.card_token);
  return answerWith(201, card, paymentMethodBody);
});

/** The card of a billing id, or of a token of the browser's capture SDK. */
function cardSent(
  space: Space,
  sent: { billing_id?: string | undefined; card_token?: string | undefined },
): VaultedCard {
  if (sent.card_token === undefined) {
    return cardOfBilling(space, sent.billing_id ?? "", "billing_id");
  }
  const card = space.vault.cardTokens.read(sent.card_token, space.time.nowMs());
  if (card !== null) return card;
  const message = "The card token is invalid, expired or used: capture a fresh card.";
  throw new Refusal("invalid_request", message, "card_token");
}

const removeCard = mounted(routes.deletePaymentMethod, (space, { params, body }, state) => {
  const customer = find(state, space, "customers", params.id);
  const card = find(state, space, "paymentMethods", params.pm_id);
  if (card.customer_id !== customer.id) throw notFound("payment method");
  deletePaymentMethod(space, customer, card, body.replacement_payment_method_id);
  const message = "The payment method was deleted.";
  return plainAnswer(200, { id: card.id, deleted: true, message });
});

export const paymentMethodEndpoints: readonly Mounted[] = [addCard, removeCard];
