import type { subscriptionStatuses } from "../../../../core/contract/resources/subscriptions.ts";
import type { Table } from "../../engine/store/table.ts";
import type { AppliedCoupon } from "../coupons/coupon.ts";
import { type AddressRecord, type WithCustomers, embedCustomer } from "../customers/customer.ts";
import type { CardSummary } from "../payment-methods/payment-method.ts";
import type { PlanRecord } from "../plans/plan.ts";

export type SubscriptionStatus = (typeof subscriptionStatuses)[number];

export interface CycleRecord {
  readonly cycle: number;
  readonly order_id: string;
  readonly status: "succeeded" | "failed";
  readonly amount: number;
  readonly period_start: string;
  readonly period_end: string;
  readonly billed_at: string;
}

export interface SubscriptionRecord {
  readonly id: string;
  readonly customer_id: string;
  readonly plan_id: string;
  readonly plan: {
    readonly id: string;
    readonly name: string;
    readonly amount: number;
    readonly currency: string;
  };
  readonly status: SubscriptionStatus;
  readonly billing_cycle: BillingCycle;
  readonly payment_method: CardSummary;
  readonly shipping_address: AddressRecord | null;
  readonly current_period_start: string | null;
  readonly current_period_end: string | null;
  readonly current_billing_cycle: number;
  readonly total_billing_cycles: number;
  readonly next_billing_date: string | null;
  readonly start_date: string;
  readonly end_date: string | null;
  readonly canceled_at: string | null;
  readonly applied_coupon: AppliedCoupon | null;
  readonly failure_reason: string | null;
  readonly attempt_count: number;
  readonly next_retry_at: string | null;
  readonly cycles: readonly CycleRecord[];
  /** Billing dates are counted from here: the start, or the period in which the billing cycle was changed. */
  readonly schedule: { readonly base: string; readonly periods: number };
  /** The declined renewal in dunning. */
  readonly dunning: {
    readonly order_id: string;
    readonly first_declined_at: string;
    readonly retries: number;
  } | null;
  readonly created_at: string;
  readonly updated_at: string;
}

export const planSummary = ({ id, name, amount, currency }: PlanRecord): SubscriptionRecord["plan"] => ({
  id,
  name,
  amount,
  currency,
});

/** A subscription without its cycles. The detailed fields are always shown. */
export function subscriptionBody(subscription: SubscriptionRecord): Record<string, unknown> {
  const { plan_id: _planId, schedule: _schedule, dunning: _dunning, cycles: _cycles, ...body } = subscription;
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

export type PeriodFields = Pick<
  SubscriptionRecord,
  "status" | "current_period_start" | "current_period_end" | "current_billing_cycle" | "next_billing_date" | "schedule"
>;

/**
 * The position of a subscription once `cycle` is paid: period, cycle and next billing date advance together. With its
 * last cycle paid it is completed; past its end date it bills no more.
 */
export function periodsAfterPayment(
  subscription: Pick<SubscriptionRecord, "billing_cycle" | "total_billing_cycles" | "end_date" | "schedule">,
  cycle: number,
  periods: number,
): PeriodFields {
  const { billing_cycle, total_billing_cycles, end_date, schedule } = subscription;
  const base = new Date(schedule.base);
  const start = billingDate(base, billing_cycle, periods).toISOString();
  const end = billingDate(base, billing_cycle, periods + 1).toISOString();
  const isLast = total_billing_cycles > 0 && cycle >= total_billing_cycles;
  const status: SubscriptionStatus = isLast ? "completed" : "active";
  const billsAgain = !isLast && (end_date === null || end <= end_date);
  return {
    status,
    current_period_start: start,
    current_period_end: end,
    current_billing_cycle: cycle,
    next_billing_date: billsAgain ? end : null,
    schedule: { base: schedule.base, periods },
  };
}

/** A resolved billing interval: a month-based cycle always has its day. */
export interface BillingCycle {
  interval: "day" | "month";
  interval_count: number;
  /** Day of month 1 to 31; null on day-based cycles. */
  anchor_day: number | null;
}

const dayMs = 86_400_000;

/**
 * The n-th billing date after `start` (n = 0 is the start itself), in UTC, at the start's time of day. It is always
 * counted from the start: a short month moves one date and not those that follow. The service's rule: when the month is
 * shorter, billing happens on the last day of that month.
 */
export function billingDate(start: Date, cycle: BillingCycle, n: number): Date {
  if (n === 0) return start;
  if (cycle.interval === "day") {
    return new Date(start.getTime() + n * cycle.interval_count * dayMs);
  }
  const anchorDay = cycle.anchor_day ?? start.getUTCDate();
  const date = new Date(start);
  date.setUTCDate(1);
  date.setUTCMonth(start.getUTCMonth() + n * cycle.interval_count);
  date.setUTCDate(Math.min(anchorDay, daysInMonth(date)));
  return date;
}

/** The first billing date, counted from `start`, that is later than `after`. */
export function nextBillingDateAfter(start: Date, cycle: BillingCycle, after: Date): { date: Date; n: number } {
  let n = 1;
  while (billingDate(start, cycle, n) <= after) n += 1;
  return { date: billingDate(start, cycle, n), n };
}

/** The billing cycle with its day resolved. `signup_date`, and no anchor at all, mean the day of `start`. */
export function resolveBillingCycle(
  sent: {
    interval: "day" | "month";
    interval_count: number;
    anchor_day?: number | "signup_date" | null | undefined;
  },
  start: Date,
): BillingCycle {
  const { interval, interval_count, anchor_day } = sent;
  if (interval === "day") return { interval, interval_count, anchor_day: null };
  const anchorDay = typeof anchor_day === "number" ? anchor_day : start.getUTCDate();
  return { interval, interval_count, anchor_day: anchorDay };
}

function daysInMonth(date: Date): number {
  return new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate();
}

/**
 * When a declined renewal is retried next; null after the last attempt. `retryDays` are days after the first decline of
 * the cycle. `attempts` is how many were made, at least 1.
 */
export function nextRetryAt(firstDeclinedAt: Date, attempts: number, retryDays: readonly number[]): Date | null {
  const days = retryDays[attempts - 1];
  return days === undefined ? null : new Date(firstDeclinedAt.getTime() + days * dayMs);
}
