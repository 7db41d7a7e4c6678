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
