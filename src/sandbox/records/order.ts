import type { orderStatuses } from "../../service/resources/order.ts";
import type { AppliedCoupon } from "../coupon-records.ts";
import type { FailureCode } from "../rules/cards.ts";
import type { Metadata } from "../store/table.ts";
import type { AddressRecord } from "./customer.ts";
import type { CardSummary } from "./payment-method.ts";
import type { TransactionRecord } from "./transaction.ts";

export type OrderStatus = (typeof orderStatuses)[number];

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
