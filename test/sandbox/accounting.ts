import { expect } from "vitest";
import type { Json } from "./harness.ts";

/* The invariants that every state of the sandbox keeps (checklist, group 29), looked for in a snapshot. */

const sum = (amounts: number[]) => amounts.reduce((total, amount) => total + amount, 0);
const sales = (order: Json): Json[] => order.transactions.filter((t: Json) => t.type === "sale");
const isCaptured = ({ status }: Json) => status === "succeeded" || status === "chargeback";
const isGivenBack = ({ type, status }: Json) => type === "refund" && status === "succeeded";

/** Statements 523 to 526: an order adds up and has one captured sale at most. */
export function expectOrdersToAddUp(state: Json): void {
  for (const order of state.orders as Json[]) {
    expect(order.total).toBe(order.subtotal - order.discount_amount);
    expect(Math.min(order.total, order.subtotal, order.discount_amount)).toBeGreaterThanOrEqual(0);
    expect(order.applied_coupon?.discount_amount ?? 0).toBe(order.discount_amount);
    expect(order.subtotal).toBe(sum(order.items.map((item: Json) => item.price * item.quantity)));
    const given = sum(order.transactions.filter(isGivenBack).map((t: Json) => t.amount));
    expect(given).toBeLessThanOrEqual(order.total);
    // Of an order that cost nothing, nothing can be refunded.
    if (order.total > 0) expect(given === order.total).toBe(order.status === "refunded");
    const captured = sales(order).filter(isCaptured);
    expect(captured.length).toBeLessThanOrEqual(1);
    if (order.status === "failed") expect(captured).toEqual([]);
    if (order.status === "succeeded") expect(captured).toHaveLength(1);
    if (captured[0] !== undefined) expect(captured[0].amount).toBe(order.total);
    expect(order.failure_code !== null).toBe(order.status === "failed");
    const attempts = sales(order).map((t) => t.attempt_count);
    expect(attempts).toEqual(attempts.map((_, i) => i + 1));
    expect(order.updated_at >= order.created_at).toBe(true);
  }
}

/** Statements 527 and 528: paid cycles are 1 to k, and nothing is sold after an end. */
export function expectCyclesWithoutGap(state: Json): void {
  const all = state.orders as Json[];
  for (const subscription of state.subscriptions as Json[]) {
    const own = all.filter((order) => order.subscription_id === subscription.id);
    const paid = own.filter((order) => sales(order).some(({ status }) => status !== "failed"));
    const cycles = paid.map(({ subscription_cycle }) => subscription_cycle as number).toSorted((a, b) => a - b);
    expect(cycles).toEqual(cycles.map((_, i) => i + 1));
    expect(subscription.current_billing_cycle).toBe(cycles.length);
    const endedAt = subscription.status === "completed" ? subscription.updated_at : subscription.canceled_at;
    if (endedAt === null) continue;
    for (const sale of own.flatMap(sales)) expect(sale.created_at <= endedAt).toBe(true);
  }
}

/** Statement 530: money told by transactions is money told by orders. */
export function expectSumsToAgree(state: Json): void {
  const inline = (state.orders as Json[]).flatMap((order) => order.transactions);
  const transactions = new Map(state.transactions.map((t: Json) => [t.id, t]));
  expect(inline).toHaveLength(transactions.size);
  for (const { id, type, status, amount, currency, updated_at } of inline) {
    expect(transactions.get(id)).toMatchObject({ type, status, amount, currency, updated_at });
  }
  for (const currency of new Set(inline.map((t) => t.currency))) {
    const net = (records: Json[]) =>
      sum(records.filter((t) => t.type === "sale" && isCaptured(t)).map((t) => t.amount)) -
      sum(records.filter(isGivenBack).map((t) => t.amount));
    const own = (records: Json[]) => records.filter((t) => t.currency === currency);
    expect(net(own(state.transactions))).toBe(net(own(inline)));
  }
}

/** A coupon counts what was redeemed with it, and no limit is exceeded. */
export function expectRedemptionsToAgree(state: Json): void {
  const redemptions = state.coupon_redemptions as Json[];
  const redeeming = (state.orders as Json[]).filter(
    ({ applied_coupon, subscription_id, subscription_cycle }) =>
      applied_coupon !== null && (subscription_id === null || (subscription_cycle ?? 1) === 1),
  );
  expect(redemptions.map(({ order_id }) => order_id).toSorted(byText)).toEqual(
    redeeming.map(({ id }) => id).toSorted(byText),
  );
  for (const coupon of state.coupons as Json[]) {
    const own = redemptions.filter(({ coupon_id }) => coupon_id === coupon.id);
    expect(coupon.redemption_count).toBe(own.length);
    expect(own.length).toBeLessThanOrEqual(coupon.max_redemptions ?? Infinity);
    const codes = (state.coupon_codes as Json[]).filter((code) => code.coupon_id === coupon.id);
    expect(sum(codes.map((code) => code.redemption_count))).toBe(own.length);
    for (const code of codes) {
      const most = coupon.max_redemptions_per_code ?? Infinity;
      expect(code.redemption_count).toBeLessThanOrEqual(most);
    }
  }
}

export function expectSoundAccounts(state: Json): void {
  expectOrdersToAddUp(state);
  expectCyclesWithoutGap(state);
  expectSumsToAgree(state);
  expectRedemptionsToAgree(state);
}

const byText = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
