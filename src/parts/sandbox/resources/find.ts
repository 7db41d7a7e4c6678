import { ApiError, invalidValue, notFound } from "../engine/api-error.ts";
import type { Mode } from "../engine/keys.ts";
import type { Space } from "../engine/space.ts";
import type { State } from "../engine/state.ts";
import type { Table } from "../engine/store/table.ts";
import type { CustomerRecord } from "./customers/customer.ts";
import { assertGateway } from "./payment-methods/card-gateway.ts";
import { cardsOf } from "./payment-methods/payment-method-operations.ts";
import type { PaymentMethodRecord } from "./payment-methods/payment-method.ts";

type TableName = {
  [K in keyof Space]: Space[K] extends Table<infer _> ? K : never;
}[keyof Space];

type RecordOf<N extends TableName> = NonNullable<ReturnType<Space[N]["get"]>>;

const nouns: Readonly<Record<TableName, string>> = {
  customers: "customer",
  paymentMethods: "payment method",
  products: "product",
  plans: "plan",
  orders: "order",
  subscriptions: "subscription",
  transactions: "transaction",
  coupons: "coupon",
  couponCodes: "coupon code",
  redemptions: "redemption",
  roles: "role",
  teamMembers: "team member",
  outbox: "message",
  webhookEndpoints: "webhook endpoint",
};

/**
 * The record with an id. Refuses an unknown id with 404, and one of the other environment with 403
 * `environment_mismatch`. `param` is the body field that named it, if any.
 */
export function find<N extends TableName>(
  state: Pick<State, "merchants">,
  space: Space,
  table: N,
  id: string,
  param: string | null = null,
): RecordOf<N> {
  const record = space[table].get(id);
  if (record !== undefined) return record as RecordOf<N>;
  const otherMode: Mode = space.mode === "test" ? "live" : "test";
  const twin = state.merchants.get(space.merchant)?.spaces[otherMode];
  if (twin?.[table].get(id) === undefined) throw notFound(nouns[table], param);
  throw new ApiError("environment_mismatch", `The ${nouns[table]} belongs to the other environment.`, param);
}

/** The customer and the card: the checks that orders and subscriptions share. */
export function chargeParties(
  state: State,
  space: Space,
  sent: { customer_id: string; payment_method_id: string },
): { customer: CustomerRecord; card: PaymentMethodRecord } {
  const customer = find(state, space, "customers", sent.customer_id, "customer_id");
  if (customer.deleted) throw invalidValue("customer_id", "The customer is deleted.");
  if (cardsOf(space, customer.id).length === 0) {
    const message = "The customer has no card on file.";
    throw new ApiError("customer_not_configured", message, "customer_id");
  }
  assertGateway(space);
  if (space.settings().card_replacement_required) {
    const message = "The card must be captured again.";
    throw new ApiError("replacement_required", message, "payment_method_id");
  }
  return { customer, card: cardOf(state, space, customer.id, sent.payment_method_id) };
}

/** A card of a customer. One of another customer is unknown. */
export function cardOf(state: State, space: Space, customerId: string, cardId: string): PaymentMethodRecord {
  const card = find(state, space, "paymentMethods", cardId, "payment_method_id");
  if (card.customer_id !== customerId) throw notFound("payment method", "payment_method_id");
  return card;
}
