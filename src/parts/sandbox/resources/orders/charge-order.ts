import { ApiError } from "../../engine/api-error.ts";
import type { Space } from "../../engine/space.ts";
import type { Metadata } from "../../engine/store/table.ts";
import type { AppliedCoupon } from "../coupons/coupon.ts";
import type { AddressRecord } from "../customers/customer.ts";
import type { PaymentMethodRecord } from "../payment-methods/payment-method.ts";
import { outcomeOf, testCards } from "../payment-methods/test-cards.ts";
import type { TransactionRecord } from "../transactions/transaction.ts";
import type { OrderItemRecord, OrderRecord, Price, PricedItem } from "./order.ts";

export interface NewOrder {
  customerId: string;
  card: PaymentMethodRecord;
  items: readonly PricedItem[];
  price: Price;
  /** The snapshot of the coupon behind the discount. */
  appliedCoupon: AppliedCoupon | null;
  currency: string;
  description: string | null;
  shippingAddress: AddressRecord | null;
  metadata: Metadata;
  /** Set for a charge of a subscription. The cycle of a first charge is null until it is approved. */
  subscription?: { id: string; cycle: number };
  /** The extra fields of `order.failed`, should the charge be declined. */
  failureDetails?: (order: OrderRecord) => { attempt_count: number; next_retry_at: string | null };
}

/**
 * Creates an order, which charges it: `pending`, then `succeeded` or `failed`. A decline is not an error. Sends an
 * event for the order and one for its outcome.
 */
export function createOrder(space: Space, input: NewOrder): OrderRecord {
  return completeOrder(space, openOrder(space, input), input);
}

/** The first half of a creation: the order as it is before the gateway has answered. */
export function openOrder(space: Space, input: NewOrder): OrderRecord {
  const { subscription } = input;
  const at = space.time.iso();
  const pending: OrderRecord = {
    id: space.ids.uuid(),
    order_number: space.ids.orderNumber(),
    customer_id: input.customerId,
    status: "pending",
    items: input.items.map((item) => orderItem(space, item)),
    subtotal: input.price.subtotal,
    discount_amount: input.price.discount_amount,
    total: input.price.total,
    currency: input.currency,
    description: input.description,
    applied_coupon: input.appliedCoupon,
    payment_method: input.card.summary,
    transactions: [],
    shipping_address: input.shippingAddress,
    metadata: input.metadata,
    failure_code: null,
    failure_reason: null,
    subscription_id: subscription?.id ?? null,
    subscription_cycle: isFirstCharge(input) ? null : (subscription?.cycle ?? null),
    created_at: at,
    updated_at: at,
  };
  space.orders.insert(pending);
  if (showsPending(space)) space.emit("order.created", { kind: "order", record: pending });
  return pending;
}

/** The second half: applies the gateway's answer. */
export function completeOrder(
  space: Space,
  opened: OrderRecord,
  input: Pick<NewOrder, "card" | "subscription" | "failureDetails">,
): OrderRecord {
  const order = chargeOrder(
    space,
    space.orders.get(opened.id) ?? opened,
    input.card,
    isFirstCharge(input) ? { subscription_cycle: 1 } : {},
  );
  if (!showsPending(space)) space.emit("order.created", { kind: "order", record: order });
  announceOutcome(space, order, input.failureDetails?.(order));
  return order;
}

function isFirstCharge({ subscription }: Pick<NewOrder, "subscription">): boolean {
  return subscription?.cycle === 1;
}

function showsPending(space: Space): boolean {
  return space.settings().order_created_snapshot === "pending";
}

function orderItem(space: Space, item: PricedItem): OrderItemRecord {
  return {
    id: space.ids.uuid(),
    product_id: item.product_id,
    name: item.name,
    quantity: item.quantity,
    price: item.price,
    total: item.price * item.quantity,
  };
}

/** The number of charges of an order's card. */
export function attemptsOf(order: OrderRecord): number {
  return order.transactions.filter((transaction) => transaction.type === "sale").length;
}

/** The card that an order is charged to. Refused if it was removed since. */
export function chargedCard(space: Space, order: OrderRecord): PaymentMethodRecord {
  const card = space.paymentMethods.get(order.payment_method.id);
  if (card !== undefined) return card;
  const message = "The order's payment method no longer exists: collect the card again.";
  throw new ApiError("replacement_required", message, "payment_method_id");
}

/**
 * Submits a sale for a pending or failed order and stores the outcome: `succeeded`, or `failed` with code and reason.
 * Each attempt is a transaction of its own. If a coupon leaves an amount of zero, the order succeeds without the
 * gateway. Sends no event: only the caller knows why the order was charged.
 */
export function chargeOrder(
  space: Space,
  order: OrderRecord,
  card: PaymentMethodRecord,
  onApproval: Partial<Pick<OrderRecord, "subscription_cycle">> = {},
): OrderRecord {
  const isFree = order.total === 0;
  const behaviour = isFree ? undefined : testCards[card.token];
  const declined = outcomeOf(behaviour?.charges ?? [], card.used.charges);
  if (!isFree) card.used.charges += 1;
  const at = space.touch(order.updated_at);
  const sale: TransactionRecord = {
    id: space.ids.uuid(),
    type: "sale",
    status: declined !== null ? "failed" : confirmsLater(space) && !isFree ? "pending" : "succeeded",
    amount: order.total,
    currency: order.currency,
    customer_id: order.customer_id,
    order_id: order.id,
    payment_method: card.summary,
    processor_transaction_id: isFree ? null : space.ids.processorId(),
    authorization_code: isFree || declined !== null ? null : space.ids.authorizationCode(),
    attempt_count: attemptsOf(order) + 1,
    failure_code: declined?.code ?? null,
    failure_reason: declined?.reason ?? null,
    description: order.description,
    metadata: order.metadata,
    // Not `at`, which may be a millisecond ahead: no sale may be dated after the end of its subscription.
    created_at: space.time.iso(),
    updated_at: at,
  };
  const charged = withCharge(order, sale, onApproval.subscription_cycle);
  space.transactions.insert(sale);
  space.orders.replace(charged);
  if (sale.status === "pending") scheduleSettlement(space, sale);
  if (declined === null && behaviour?.chargeback === true) {
    const delayMs = space.settings().chargeback_delay_seconds * 1000;
    space.schedule("chargeback", order.id, space.time.nowMs() + delayMs);
  }
  return charged;
}

/** Copied field by field: this is the hot path, and objects made by spreading take three times the memory. */
function withCharge(
  order: OrderRecord,
  sale: TransactionRecord,
  cycleOnApproval: number | null | undefined,
): OrderRecord {
  const isApproved = sale.status !== "failed";
  return {
    id: order.id,
    order_number: order.order_number,
    customer_id: order.customer_id,
    status: isApproved ? "succeeded" : "failed",
    items: order.items,
    subtotal: order.subtotal,
    discount_amount: order.discount_amount,
    total: order.total,
    currency: order.currency,
    description: order.description,
    applied_coupon: order.applied_coupon,
    payment_method: order.payment_method,
    transactions: order.transactions.concat(sale),
    shipping_address: order.shipping_address,
    metadata: order.metadata,
    failure_code: sale.failure_code,
    failure_reason: sale.failure_reason,
    subscription_id: order.subscription_id,
    subscription_cycle: (isApproved ? cycleOnApproval : undefined) ?? order.subscription_cycle,
    created_at: order.created_at,
    updated_at: sale.updated_at,
  };
}

/**
 * Sends the event of a charge's outcome. `order.failed` has four forms: one-time (all null), first charge (cycle and
 * retry null), renewal in dunning (both set), last retry of a renewal (retry null).
 */
export function announceOutcome(
  space: Space,
  order: OrderRecord,
  failure?: { attempt_count: number; next_retry_at: string | null },
): void {
  if (order.status === "succeeded") {
    space.emit("order.succeeded", { kind: "order", record: order });
    return;
  }
  const extra = failure ?? { attempt_count: null, next_retry_at: null };
  space.emit("order.failed", { kind: "order", record: order, extra });
}

/*
 * The live service confirms a sale after 1 to 3 business days, a sandbox immediately. The setting
 * `live_settlement_days` shows the former: a sale is `pending`, `in_progress` from the next midnight, when its batch is
 * closed, then `succeeded`. The order counts as paid throughout. The interface names no event for it.
 */

/** Whether this environment confirms sales later than it makes them. */
function confirmsLater({ mode, settings }: Pick<Space, "mode" | "settings">): boolean {
  return mode === "live" && settings().live_settlement_days > 0;
}

/** Plans the next step of an unsettled sale. */
function scheduleSettlement(space: Space, sale: TransactionRecord): void {
  const at = stepAt(space, sale);
  if (at !== null) space.schedule("settlement", sale.id, at.getTime());
}

/** Takes the next settlement step of a sale if it is due. False when there is none, as after a chargeback. */
export function settleIfDue(space: Space, id: string): boolean {
  const sale = space.transactions.get(id);
  const at = sale === undefined ? null : stepAt(space, sale);
  if (sale === undefined || at === null || at > space.time.now()) return false;
  const moved: TransactionRecord = {
    ...sale,
    status: sale.status === "pending" ? "in_progress" : "succeeded",
    updated_at: space.touch(sale.updated_at),
  };
  space.transactions.replace(moved);
  const order = sale.order_id === null ? undefined : space.orders.get(sale.order_id);
  if (order !== undefined) {
    const transactions = withTransaction(order, moved);
    space.orders.replace({ ...order, transactions, updated_at: space.touch(order.updated_at) });
  }
  scheduleSettlement(space, moved);
  return true;
}

function stepAt(space: Space, { type, status, created_at }: TransactionRecord): Date | null {
  const made = new Date(created_at);
  if (type !== "sale") return null;
  if (status === "pending") return nextMidnight(made);
  if (status !== "in_progress") return null;
  return businessDaysAfter(made, space.settings().live_settlement_days);
}

/** The transactions of an order, one of them replaced by its newer state. */
export function withTransaction({ transactions }: OrderRecord, newer: TransactionRecord): TransactionRecord[] {
  return transactions.map((known) => (known.id === newer.id ? newer : known));
}

const dayMs = 86_400_000;

/** The same time of day, this many business days later. Saturdays and Sundays (UTC) do not count. */
export function businessDaysAfter(start: Date, days: number): Date {
  let date = start;
  for (let left = days; left > 0;) {
    date = new Date(date.getTime() + dayMs);
    if (date.getUTCDay() !== 0 && date.getUTCDay() !== 6) left -= 1;
  }
  return date;
}

/** The first midnight (UTC) after a time. */
function nextMidnight(time: Date): Date {
  return new Date((Math.floor(time.getTime() / dayMs) + 1) * dayMs);
}
