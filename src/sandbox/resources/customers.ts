import * as routes from "../../service/routes/customers.ts";
import { answerWith, plainAnswer } from "../answer.ts";
import { listAnswer } from "../http/list.ts";
import type { Mounted } from "../http/mount.ts";
import { mounted } from "../http/mount.ts";
import { cardOfBilling } from "../operations/cards.ts";
import { createCustomer, deleteCustomer, updateCustomer } from "../operations/customers.ts";
import { assertBillingDetails, assertGateway } from "../operations/gateway.ts";
import { addPaymentMethod, deletePaymentMethod } from "../operations/payment-methods.ts";
import { notFound, Refusal } from "../refusal.ts";
import type { Space } from "../space.ts";
import type { VaultedCard } from "../store/vault.ts";
import { wordsOf } from "../store/word-index.ts";
import { customerBody, paymentMethodBody } from "../wire/customer.ts";
import { expandedCustomer } from "../wire/expanded-customer.ts";
import { find } from "./find.ts";

const create = mounted(routes.createCustomer, (space, { body }) =>
  answerWith(201, createCustomer(space, body), customerBody),
);

const list = mounted(routes.listCustomers, (space, { query }) => {
  const { email, ids, q, deleted = false } = query;
  return listAnswer(space, space.customers, query, {
    url: "/v1/customers",
    show: (customer) => expandedCustomer(space, customer, query.expand),
    ...(email === undefined && ids === undefined ? {} : { among: named(space, email, ids) }),
    ...(deleted ? {} : { anyOf: { deleted: ["false"] } }),
    words: q === undefined ? undefined : wordsOf(q),
    fields: query["fields[customers]"],
  });
});

/** Customers named by address, which belongs to one of them (also to a deleted one), by id, or by both. */
function named(space: Space, email: string | undefined, ids: string[] | undefined): string[] {
  if (email === undefined) return ids ?? [];
  const owner = space.emails.get(email.toLowerCase());
  return owner !== undefined && (ids?.includes(owner) ?? true) ? [owner] : [];
}

const retrieve = mounted(routes.getCustomer, (space, { params, query }, state) => {
  const customer = find(state, space, "customers", params.id);
  return plainAnswer(200, expandedCustomer(space, customer, query.expand));
});

const update = mounted(routes.updateCustomer, (space, { params, body }, state) => {
  const customer = find(state, space, "customers", params.id);
  return answerWith(200, updateCustomer(space, customer, body), customerBody);
});

const remove = mounted(routes.deleteCustomer, (space, { params }, state) => {
  // Again is a success (spec, DELETE customer), also where nothing is left of the customer.
  if (!space.hardDeleted.customers.includes(params.id)) {
    deleteCustomer(space, find(state, space, "customers", params.id));
  }
  return plainAnswer(200, { id: params.id, deleted: true, message: "The customer was deleted." });
});

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

export const customerEndpoints: readonly Mounted[] = [
  create,
  list,
  retrieve,
  update,
  remove,
  addCard,
  removeCard,
];
