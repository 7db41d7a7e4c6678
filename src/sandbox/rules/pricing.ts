export interface PricedItem {
  product_id: string;
  name: string;
  quantity: number;
  /** Of one, in cents. */
  price: number;
}

export interface Price {
  /** Cents, before discounts. */
  subtotal: number;
  discount_amount: number;
  /** Cents, net of discount. */
  total: number;
}

/** Cents of all items, before discounts. */
export function subtotalOf(items: readonly PricedItem[]): number {
  return items.reduce((sum, item) => sum + item.price * item.quantity, 0);
}

/** What an order costs (spec, Order). Null when the sum is beyond what an integer in JSON can carry. */
export function priceOf(items: readonly PricedItem[], discountAmount = 0): Price | null {
  const subtotal = subtotalOf(items);
  if (!Number.isSafeInteger(subtotal)) return null;
  const discount_amount = Math.min(discountAmount, subtotal);
  return { subtotal, discount_amount, total: subtotal - discount_amount };
}
