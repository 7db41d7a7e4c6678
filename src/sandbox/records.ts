import type { orderStatuses } from "../service/resources/order.ts";
import type { stockStatuses } from "../service/resources/product.ts";
import type { subscriptionStatuses } from "../service/resources/subscription.ts";
import type { transactionStatuses, transactionTypes } from "../service/resources/transaction.ts";
import type { AppliedCoupon } from "./coupon-records.ts";
import type { BillingCycle } from "./rules/billing-dates.ts";
import type { FailureCode } from "./rules/cards.ts";

/*
 * What the sandbox keeps of each resource. Fields bear the interface's names; records are frozen by
 * convention: a change makes a new record, so that whoever holds one (an event, a stored answer) holds a snapshot.
 */

export type OrderStatus = (typeof orderStatuses)[number];
export type SubscriptionStatus = (typeof subscriptionStatuses)[number];
export type TransactionStatus = (typeof transactionStatuses)[number];
export type TransactionType = (typeof transactionTypes)[number];
export type Metadata = Readonly<Record<string, unknown>>;

export interface AddressRecord {
  readonly id: string;
  readonly first_name: string;
  readonly last_name: string;
  readonly address_line1: string;
  readonly address_line2: string | null;
  readonly city: string;
  readonly state: string;
  readonly postal_code: string;
  readonly country: string;
  readonly phone: string | null;
}

export interface CustomerRecord {
  readonly id: string;
  readonly email: string;
  readonly first_name: string | null;
  readonly last_name: string | null;
  readonly phone: string | null;
  readonly company: string | null;
  readonly shipping_address: AddressRecord | null;
  readonly metadata: Metadata;
  readonly default_payment_method_id: string | null;
  readonly deleted: boolean;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface CardSummary {
  readonly id: string;
  readonly card_last_four: string;
  readonly card_brand: string;
}

export interface PaymentMethodRecord {
  readonly id: string;
  readonly customer_id: string;
  readonly card: { readonly last4: string; readonly brand: string; readonly exp: string };
  readonly is_default: boolean;
  readonly created_at: string;
  /** As orders, transactions and subscriptions show it. */
  readonly summary: CardSummary;
  /** Which of `testCards` it behaves like. */
  readonly token: string;
  /** Where it lies in the gateway's vault; null for a test token. */
  readonly billing_id: string | null;
  /** Charges and refunds made so far. It counts on; it is not part of a snapshot. */
  readonly used: { charges: number; refunds: number };
}

export interface ProductRecord {
  readonly id: string;
  readonly name: string;
  readonly description: string | null;
  readonly pricing: { readonly amount: number; readonly currency: string };
  readonly requires_shipping: boolean;
  readonly sku: string | null;
  readonly stock_status: (typeof stockStatuses)[number];
  readonly metadata: Metadata;
  readonly active: boolean;
  readonly deleted: boolean;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface ProductImageRecord {
  readonly id: string;
  readonly product_id: string;
  readonly url: string;
  readonly created_at: string;
  /** Media type, by content. */
  readonly type: string;
  readonly bytes: Buffer;
}

export interface PlanRecord {
  readonly id: string;
  readonly name: string;
  readonly plan_code: string;
  readonly description: string | null;
  readonly amount: number;
  readonly one_time_amount: number;
  readonly currency: string;
  readonly billing_cycle: {
    readonly interval: "day" | "month";
    readonly interval_count: number;
    readonly anchor_day: number | "signup_date" | null;
  };
  readonly billing_cycles: number;
  readonly products: readonly { readonly id: string; readonly quantity: number }[];
  readonly pricing_tiers: readonly { readonly name: string; readonly amount: number }[];
  readonly active: boolean;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface TransactionRecord {
  readonly id: string;
  readonly type: TransactionType;
  readonly status: TransactionStatus;
  /** Cents; positive for refunds too (statement 340). */
  readonly amount: number;
  readonly currency: string;
  readonly customer_id: string;
  readonly order_id: string | null;
  readonly payment_method: CardSummary | null;
  /** Null where nothing had to be charged, so that no processor was asked (statement 316). */
  readonly processor_transaction_id: string | null;
  readonly authorization_code: string | null;
  readonly attempt_count: number;
  readonly failure_code: FailureCode | null;
  readonly failure_reason: string | null;
  readonly description: string | null;
  readonly metadata: Metadata;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface OrderItemRecord {
  readonly id: string;
  readonly product_id: string;
  readonly name: string;
  readonly quantity: number;
  readonly price: number;
  readonly total: number;
}

export interface OrderRecord {
  readonly id: string;
  readonly order_number: string;
  readonly customer_id: string;
  readonly status: OrderStatus;
  readonly items: readonly OrderItemRecord[];
  readonly subtotal: number;
  readonly discount_amount: number;
  readonly total: number;
  readonly currency: string;
  readonly description: string | null;
  readonly applied_coupon: AppliedCoupon | null;
  readonly payment_method: CardSummary;
  readonly transactions: readonly TransactionRecord[];
  readonly shipping_address: AddressRecord | null;
  readonly metadata: Metadata;
  readonly failure_code: FailureCode | null;
  readonly failure_reason: string | null;
  readonly subscription_id: string | null;
  readonly subscription_cycle: number | null;
  readonly created_at: string;
  readonly updated_at: string;
}

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

export interface EndpointSecret {
  readonly value: string;
  /** Null on the newest one. */
  readonly valid_until: string | null;
}

export interface WebhookEndpointRecord {
  readonly id: string;
  readonly url: string;
  readonly description: string | null;
  readonly enabled_events: readonly string[];
  readonly status: "enabled" | "disabled";
  readonly api_version: string;
  readonly api_version_pinned_at: string | null;
  /** Newest first. */
  readonly secrets: readonly EndpointSecret[];
  readonly created_at: string;
  readonly updated_at: string;
}
