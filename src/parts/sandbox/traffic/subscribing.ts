import { storeAddress } from "../resources/customers/customer-operations.ts";
import type { PlanRecord } from "../resources/plans/plan.ts";
import {
  cancelSubscription,
  changeSubscription,
  createSubscription,
} from "../resources/subscriptions/subscription-operations.ts";
import { type SubscriptionRecord, resolveBillingCycle } from "../resources/subscriptions/subscription.ts";
import type { Market } from "./market.ts";
import { type TrafficContext, between, happens, dayMs, pick, pickWeighted } from "./script.ts";

/**
 * The cards of subscribers: dunning that recovers at the first or second retry, dunning that fails, declined first
 * charges.
 */
const subscriberCards = [
  [null, 74],
  ["card_renewal_declined_once", 8],
  ["card_renewal_declined_twice", 4],
  ["card_renewal_declined", 6],
  ["card_renewal_lost", 2],
  ["card_insufficient_funds", 4],
  ["card_expired", 2],
] as const;

const cadences = [
  ["daily", 4],
  ["weekly", 50],
  ["biweekly", 16],
  ["monthly", 25],
  ["quarterly", 3],
  ["annual", 2],
] as const;

/** The share of the span in which subscriptions begin, so that renewals and their dunning happen within it. */
const latestBegin = 0.5;

export function planSubscribing(stage: TrafficContext, market: Market, subscriptions: number): void {
  const span = (stage.endMs - stage.startMs) * latestBegin;
  for (let i = 0; i < subscriptions; i++) {
    stage.at(stage.startMs + span * stage.random(), () => subscribe(stage, market));
  }
}

function subscribe(stage: TrafficContext, market: Market): void {
  const { space, random, counts } = stage;
  const { people, campaigns } = market;
  const customer = people.anyone();
  const token = pickWeighted(random, subscriberCards);
  const card = token === null ? people.goodCard(customer) : people.cardOf(customer, token);
  const plan = choosePlan(stage);
  const isLimited = happens(random, 0.1);
  const { interval, interval_count } = plan.billing_cycle;
  const coupon = campaigns.forPlan(customer.id, plan);
  const subscription = createSubscription(space, {
    customer: space.customers.get(customer.id) ?? customer,
    plan,
    card,
    billingCycle: resolveBillingCycle({ interval, interval_count }, space.time.now()),
    totalCycles: isLimited ? 1 + Math.floor(random() * 4) : 0,
    endDate: happens(random, 0.03) ? inDays(stage, 20) : null,
    shippingAddress: customer.shipping_address,
    coupon,
  });
  counts.subscriptions += 1;
  if (coupon !== null) counts.redemptions += 1;
  if (subscription.status === "failed") counts.declines += 1;
  planChanges(stage, market, subscription.id);
}

function choosePlan({ space, random }: TrafficContext): PlanRecord {
  const cadence = pickWeighted(random, cadences);
  const plans = space.plans.all().filter((plan) => plan.plan_code.startsWith(`box-${cadence}-`)) as [
    PlanRecord,
    ...PlanRecord[],
  ];
  return pick(random, plans);
}

/** Midnight of a future day, since end dates are dates. */
function inDays({ space }: TrafficContext, days: number): Date {
  const date = new Date(space.time.nowMs() + days * dayMs);
  date.setUTCHours(0, 0, 0, 0);
  return date;
}

function planChanges(stage: TrafficContext, market: Market, id: string): void {
  const { space, random, counts } = stage;
  const later = (act: (subscription: SubscriptionRecord) => void) =>
    stage.at(space.time.nowMs() + between(random, 1, 14) * dayMs, () => {
      const current = space.subscriptions.get(id);
      if (current !== undefined) act(current);
    });
  if (happens(random, 0.12)) {
    later((current) => {
      cancelSubscription(space, current);
      counts.cancellations += 1;
    });
  }
  if (happens(random, 0.06)) {
    later((current) => {
      const owner = space.customers.get(current.customer_id);
      if (owner === undefined || owner.deleted) return;
      changeSubscription(space, current, { card: market.people.cardOf(owner, "card_mastercard") });
    });
  }
  if (happens(random, 0.04)) {
    later((current) =>
      changeSubscription(space, current, {
        billingCycle: { interval: "month", interval_count: 1, anchor_day: 31 },
      }),
    );
  }
  if (happens(random, 0.03)) {
    later((current) => {
      const shippingAddress = storeAddress(space, current.customer_id, {
        full_name: "Moved Subscriber",
        address_line1: "9 New Road",
        city: "Denver",
        state: "CO",
        postal_code: "80014",
        country: "US",
      });
      changeSubscription(space, current, { shippingAddress });
    });
  }
}
