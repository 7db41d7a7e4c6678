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
  /** The form that orders, transactions and subscriptions show. */
  readonly summary: CardSummary;
  /** The entry of `testCards` whose behaviour it has. */
  readonly token: string;
  /** Its id in the gateway's vault; null for a test token. */
  readonly billing_id: string | null;
  /** Charges and refunds made so far. A live counter, not part of a snapshot. */
  readonly used: { charges: number; refunds: number };
}

export function paymentMethodBody(card: PaymentMethodRecord): Record<string, unknown> {
  const { id, customer_id, is_default, created_at } = card;
  return { id, type: "card", card: card.card, customer_id, is_default, created_at };
}

/** A card as the gateway keeps it, without its number and security code. */
export interface VaultedCard {
  /** The entry of `testCards` whose behaviour it has. */
  readonly behaviour: string;
  readonly last4: string;
  readonly brand: string;
  /** `MM/YYYY`. */
  readonly exp: string;
  readonly billing_id: string | null;
}

interface Token {
  readonly card: VaultedCard;
  readonly expiresAtMs: number;
}

/** A merchant's cards at the gateway in one environment. */
export interface Vault {
  /** `customer_vault_id` → its billing ids, oldest first. */
  readonly customers: Map<string, readonly string[]>;
  readonly cards: Map<string, VaultedCard>;
  readonly paymentTokens: TokenStore;
  readonly cardTokens: TokenStore;
}

/** Tokens for raw card data: one use, fifteen minutes. */
export interface TokenStore {
  issue(token: string, card: VaultedCard, nowMs: number): void;
  /** The card of a token that is unused and not expired; null otherwise. */
  read(token: string, nowMs: number): VaultedCard | null;
  use(token: string): void;
  entries(): [string, Token][];
  restore(entries: readonly [string, Token][]): void;
}

/** The lifetime of a `payment_token` and of a `card_token`. */
const lifetimeMs = 15 * 60_000;

export function createVault(): Vault {
  return {
    customers: new Map(),
    cards: new Map(),
    paymentTokens: createTokenStore(),
    cardTokens: createTokenStore(),
  };
}

function createTokenStore(): TokenStore {
  const tokens = new Map<string, Token>();
  return {
    issue(token, card, nowMs) {
      for (const [old, { expiresAtMs }] of tokens) {
        if (expiresAtMs > nowMs) break;
        tokens.delete(old);
      }
      tokens.set(token, { card, expiresAtMs: nowMs + lifetimeMs });
    },
    read(token, nowMs) {
      const known = tokens.get(token);
      return known !== undefined && nowMs < known.expiresAtMs ? known.card : null;
    },
    use: (token) => {
      tokens.delete(token);
    },
    entries: () => [...tokens],
    restore(entries) {
      for (const [token, entry] of entries) tokens.set(token, entry);
    },
  };
}
