import * as routes from "../../service/routes/capture.ts";
import { answerWith } from "../answer.ts";
import { mounted } from "../http/mount.ts";
import {
  assertBillingDetails,
  assertGateway,
  isExpired,
  readableCard,
} from "../operations/gateway.ts";
import { addPaymentMethod } from "../operations/payment-methods.ts";
import { Refusal } from "../refusal.ts";
import { paymentMethodBody } from "../wire/payment-method.ts";
import { find } from "./find.ts";

/** Of the card, only its last digits, brand and expiry outlive the request (statement 227). */
export const captureEndpoint = mounted(routes.captureCard, (space, { body }, state) => {
  const customer = find(state, space, "customers", body.customer_id, "customer_id");
  assertGateway(space);
  assertBillingDetails(space, body.billing_details);
  const { number, exp_month, exp_year } = body.card;
  const raw = { number, exp_month: Number(exp_month), exp_year: Number(exp_year) };
  const card = isExpired(raw, space.time.now()) ? null : readableCard(space, raw);
  if (card === null) {
    throw new Refusal("invalid_request", "The card cannot be read or verified.", "card_token");
  }
  const stored = addPaymentMethod(
    space,
    customer,
    { ...card, billing_id: null },
    { setAsDefault: body.set_as_default, updateSubscriptions: false },
  );
  return answerWith(201, stored, paymentMethodBody);
});
