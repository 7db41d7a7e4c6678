import * as routes from "../../../../core/contract/resources/customers.ts";
import { answerWith, plainAnswer } from "../../engine/answer.ts";
import type { Space } from "../../engine/space.ts";
import { listAnswer } from "../../http/list.ts";
import { type Mounted, mounted } from "../../http/mount.ts";
import { find } from "../find.ts";
import { cardsOf } from "../payment-methods/payment-method-operations.ts";
import { paymentMethodBody } from "../payment-methods/payment-method.ts";
import { subscriptionBody } from "../subscriptions/subscription.ts";
import { createCustomer, deleteCustomer, updateCustomer } from "./customer-operations.ts";
import { type CustomerRecord, customerBody } from "./customer.ts";

const create = mounted(routes.createCustomer, (space, { body }) =>
  answerWith(201, createCustomer(space, body), customerBody),
);

const list = mounted(routes.listCustomers, (space, { query }) => {
  const { email, ids, q = "", deleted = false } = query;
  const words = wordsOf(q);
  return listAnswer(space, space.customers, query, {
    url: `/v1${routes.listCustomers.path}`,
    show: (customer) => expandedCustomer(space, customer, query.expand),
    ...(email === undefined && ids === undefined ? {} : { among: named(space, email, ids) }),
    test: (customer) => (deleted || !customer.deleted) && holdsWords(customer, words),
    fields: query["fields[customers]"],
  });
});

/** Word separators: white space and ASCII punctuation, as in addresses. */
const wordPattern = /[^\s!-/:-@[-`{-~]+/g;
const separator = /[\s!-/:-@[-`{-~]/;

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(wordPattern) ?? [];
}

/** Whether each word begins a word of the customer's name, address or company. */
function holdsWords(customer: CustomerRecord, words: readonly string[]): boolean {
  if (words.length === 0) return true;
  const { first_name, last_name, email, company } = customer;
  const text = `${first_name ?? ""} ${last_name ?? ""} ${email} ${company ?? ""}`.toLowerCase();
  return words.every((word) => beginsIn(text, word));
}

function beginsIn(text: string, word: string): boolean {
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    if (at === 0 || separator.test(text.charAt(at - 1))) return true;
  }
  return false;
}

/** Ids of the customers named by e-mail address (a deleted customer's too), by id, or by both. */
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
  // Deleting again succeeds, even if the customer is gone.
  if (!space.hardDeleted.customers.includes(params.id)) {
    deleteCustomer(space, find(state, space, "customers", params.id));
  }
  return plainAnswer(200, { id: params.id, deleted: true, message: "The customer was deleted." });
});

export const customerEndpoints: readonly Mounted[] = [create, list, retrieve, update, remove];

export type CustomerRelation = "payment_methods" | "subscriptions";

function expandedCustomer(
  space: Space,
  customer: CustomerRecord,
  expand: readonly CustomerRelation[] = [],
): Record<string, unknown> {
  const body = customerBody(customer);
  if (expand.includes("payment_methods")) {
    body.payment_methods = cardsOf(space, customer.id).map(paymentMethodBody);
  }
  if (expand.includes("subscriptions")) {
    const owned = space.subscriptions.inGroup("customer_id", customer.id);
    body.subscriptions = owned.map(subscriptionBody);
  }
  return body;
}
