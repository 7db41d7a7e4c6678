import type { subscriptionStatuses } from "../../service/resources/subscription.ts";
import type { AppliedCoupon } from "../coupon-records.ts";
import type { BillingCycle } from "../rules/billing-dates.ts";
import type { AddressRecord } from "./customer.ts";
import type { CardSummary } from "./payment-method.ts";

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
  /** Billing dates are counted from here: the start, or the period in which the cycle was changed. */
  readonly schedule: { readonly base: string; readonly periods: number };
  /** The declined renewal that dunning works on. */
  readonly dunning: {
    readonly order_id: string;
    readonly first_declined_at: string;
    readonly retries: number;
  } | null;
  readonly created_at: string;
  readonly updated_at: string;
}
