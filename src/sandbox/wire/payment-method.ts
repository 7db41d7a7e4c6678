import type { PaymentMethodRecord } from "../records/payment-method.ts";

/** A card (spec, PaymentMethod). */
export function paymentMethodBody(card: PaymentMethodRecord): Record<string, unknown> {
  const { id, customer_id, is_default, created_at } = card;
  return { id, type: "card", card: card.card, customer_id, is_default, created_at };
}
