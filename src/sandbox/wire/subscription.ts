import type { SubscriptionRecord } from "../records/subscription.ts";
import type { PlanRecord } from "../records/plan.ts";
import type { Table } from "../store/table.ts";
import type { WithCustomers } from "./customer.ts";
import { embedCustomer } from "./customer.ts";

/** A subscription without its cycles (spec, Subscription). The detailed fields are always shown. */
export function subscriptionBody(subscription: SubscriptionRecord): Record<string, unknown> {
  const {
    plan_id: _planId,
    schedule: _schedule,
    dunning: _dunning,
    cycles: _cycles,
    ...body
  } = subscription;
  return body;
}

export type SubscriptionRelation = "customer" | "plan" | "cycles";

export function expandedSubscription(
  space: WithCustomers & { readonly plans: Pick<Table<PlanRecord>, "get"> },
  subscription: SubscriptionRecord,
  expand: readonly SubscriptionRelation[] = [],
): Record<string, unknown> {
  const body = subscriptionBody(subscription);
  if (expand.includes("customer")) embedCustomer(space, body, subscription.customer_id);
  if (expand.includes("plan")) {
    body.plan = space.plans.get(subscription.plan_id) ?? subscription.plan;
  }
  if (expand.includes("cycles")) body.cycles = subscription.cycles;
  return body;
}
