import * as routes from "../../../../core/contract/resources/payment-methods.ts";
import { answerWith, plainAnswer } from "../../engine/answer.ts";
import { ApiError, notFound } from "../../engine/api-error.ts";
import type { Space } from "../../engine/space.ts";
import { type Mounted, mounted } from "../../http/mount.ts";
import { find } from "../find.ts";
import { assertBillingDetails, assertGateway, isExpired, readableCard } from "./card-gateway.ts";
import { addPaymentMethod, cardOfBilling, deletePaymentMethod } from "./payment-method-operations.ts";
import { type VaultedCard, paymentMethodBody } from "./payment-method.ts";

const addCard = mounted(routes.addPaymentMethod, (space, { params, body }, state) => {
  const customer = find(state, space, "customers", params.id);
  assertGateway(space);
  const vaulted = cardSent(space, body);
  assertBillingDetails(space, body.billing_details);
  const card = addPaymentMethod(space, customer, vaulted, {
    setAsDefault: body.set_as_default,
    updateSubscriptions: body.update_subscriptions,
  });
  // The token is used up only once its card is stored.
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
  throw new ApiError("invalid_request", message, "card_token");
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

/** Only the card's last digits, brand and expiry outlive the request. */
export const captureEndpoint = mounted(routes.captureCard, (space, { body }, state) => {
  const customer = find(state, space, "customers", body.customer_id, "customer_id");
  assertGateway(space);
  assertBillingDetails(space, body.billing_details);
  const { number, exp_month, exp_year } = body.card;
  const raw = { number, exp_month: Number(exp_month), exp_year: Number(exp_year) };
  const card = isExpired(raw, space.time.now()) ? null : readableCard(space, raw);
  if (card === null) {
    throw new ApiError("invalid_request", "The card cannot be read or verified.", "card_token");
  }
  const stored = addPaymentMethod(
    space,
    customer,
    { ...card, billing_id: null },
    { setAsDefault: body.set_as_default, updateSubscriptions: false },
  );
  return answerWith(201, stored, paymentMethodBody);
});
