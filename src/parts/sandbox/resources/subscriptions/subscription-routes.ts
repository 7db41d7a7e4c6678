import * as routes from "../../../../core/contract/resources/subscriptions.ts";
import { answerWith, plainAnswer } from "../../engine/answer.ts";
import { ApiError, invalidValue } from "../../engine/api-error.ts";
import type { Space } from "../../engine/space.ts";
import { listAnswer } from "../../http/list.ts";
import { type Handler, type Mounted, mounted } from "../../http/mount.ts";
import { quoteForPlan } from "../coupons/redeem-coupon.ts";
import { resolveAddress } from "../customers/customer-operations.ts";
import type { AddressRecord } from "../customers/customer.ts";
import { cardOf, chargeParties, find } from "../find.ts";
import { cancelSubscription, changeSubscription, createSubscription } from "./subscription-operations.ts";
import {
  type SubscriptionRecord,
  expandedSubscription,
  resolveBillingCycle,
  subscriptionBody,
} from "./subscription.ts";

const create = mounted(routes.createSubscription, (space, { body }, state) => {
  const { customer, card } = chargeParties(state, space, body);
  const plan = find(state, space, "plans", body.plan_id, "plan_id");
  if (!plan.active) throw invalidValue("plan_id", "The plan is not active.");
  const now = space.time.now();
  const endDate = body.end_date === undefined ? null : new Date(body.end_date);
  if (endDate !== null && endDate <= now) {
    throw invalidValue("end_date", "must be after the start date");
  }
  const coupon =
    body.coupon_code === undefined
      ? null
      : quoteForPlan(space, { code: body.coupon_code, customerId: customer.id, plan });
  const subscription = createSubscription(space, {
    customer,
    plan,
    card,
    billingCycle: resolveBillingCycle(body.billing_cycle, now),
    totalCycles: body.billing_cycles ?? 0,
    endDate,
    shippingAddress: shippingOf(space, customer.id, body, null),
    coupon,
  });
  return answerWith(201, subscription, subscriptionBody);
});

/** The address of a request. A shipping option requires one. */
function shippingOf(
  space: Space,
  customerId: string,
  sent: Parameters<typeof resolveAddress>[2] & { shipping_option_id?: string | undefined },
  current: AddressRecord | null,
): AddressRecord | null {
  const address = resolveAddress(space, customerId, sent) ?? current;
  if (sent.shipping_option_id !== undefined && address === null) {
    throw invalidValue("shipping_option_id", "requires a shipping address");
  }
  return address;
}

const list = mounted(routes.listSubscriptions, (space, { query }) => {
  const { customer_id, plan_id, status } = query;
  return listAnswer(space, space.subscriptions, query, {
    url: `/v1${routes.listSubscriptions.path}`,
    show: (subscription) => expandedSubscription(space, subscription, query.expand),
    anyOf: {
      ...(customer_id === undefined ? {} : { customer_id: [customer_id] }),
      ...(plan_id === undefined ? {} : { plan_id: [plan_id] }),
      ...(status === undefined ? {} : { status: [status] }),
    },
    fields: query["fields[subscriptions]"],
  });
});

const retrieve = mounted(routes.getSubscription, (space, { params, query }, state) => {
  const subscription = find(state, space, "subscriptions", params.id);
  return plainAnswer(200, expandedSubscription(space, subscription, query.expand));
});

const update = mounted(routes.updateSubscription, (space, { params, body }, state) => {
  const subscription = find(state, space, "subscriptions", params.id);
  assertModifiable(subscription);
  const { payment_method_id, billing_cycle } = body;
  const current = subscription.shipping_address;
  const address = shippingOf(space, subscription.customer_id, body, current);
  const changed = changeSubscription(space, subscription, {
    ...(payment_method_id === undefined
      ? {}
      : { card: cardOf(state, space, subscription.customer_id, payment_method_id) }),
    ...(address === null || address === current ? {} : { shippingAddress: address }),
    ...(billing_cycle === undefined ? {} : { billingCycle: billing_cycle }),
  });
  return answerWith(200, changed, subscriptionBody);
});

/** Call it before anything else is checked: an address in a refused request must not be stored. */
function assertModifiable({ status }: SubscriptionRecord): void {
  if (status === "active" || status === "paused") return;
  const message = `A subscription with status ${status} cannot be changed.`;
  throw new ApiError("subscription_not_modifiable", message);
}

const cancel = mounted(routes.cancelSubscription, (space, { params }, state) => {
  const subscription = find(state, space, "subscriptions", params.id);
  const { id, status, canceled_at } = cancelSubscription(space, subscription);
  return plainAnswer(200, { id, status, canceled_at });
});

const notImplemented: Handler<typeof routes.pauseSubscription> = (space, { params }, state) => {
  find(state, space, "subscriptions", params.id);
  throw new ApiError("not_implemented", "The service does not implement this yet.");
};

export const subscriptionEndpoints: readonly Mounted[] = [
  create,
  list,
  retrieve,
  update,
  cancel,
  mounted(routes.pauseSubscription, notImplemented),
  mounted(routes.resumeSubscription, notImplemented),
];
