import type { CustomerRecord } from "../records/customer.ts";
import type { PaymentMethodRecord } from "../records/payment-method.ts";
import { invalidValue } from "../refusal.ts";
import { testCards } from "../rules/cards.ts";
import type { Space } from "../space.ts";
import type { VaultedCard } from "../store/vault.ts";

/** Every test card expires then; the interface asks for any future expiry. */
const expiryYears = 4;

/** A customer's cards, oldest first. */
export function cardsOf(space: Space, customerId: string): PaymentMethodRecord[] {
  return space.paymentMethods.inGroup("customer_id", customerId);
}

/**
 * The card that a customer vault's id names: the newest one in it. `param` is the field that carried it. Live keys have no
 * test cards (spec, Sandbox).
 */
export function cardOfCustomerVault(space: Space, id: string, param: string): VaultedCard {
  const newest = space.vault.customers.get(id)?.at(-1);
  const card = newest === undefined ? undefined : space.vault.cards.get(newest);
  return card ?? testCard(space, id, param);
}

/** The card that a billing id of the gateway names. */
export function cardOfBilling(space: Space, id: string, param: string): VaultedCard {
  return space.vault.cards.get(id) ?? testCard(space, id, param);
}

function testCard(space: Space, token: string, param: string): VaultedCard {
  const card = space.mode === "live" ? null : cardLike(space, token);
  if (card === null) throw invalidValue(param, "No such card in the gateway's vault.");
  return card;
}

/** A card that behaves like a test card, as the vault would keep it; null where no test card is named so. */
export function cardLike(space: Pick<Space, "time">, token: string): VaultedCard | null {
  const card = Object.hasOwn(testCards, token) ? testCards[token] : undefined;
  if (card === undefined) return null;
  const today = space.time.now();
  const month = String(today.getUTCMonth() + 1).padStart(2, "0");
  const exp = `${month}/${today.getUTCFullYear() + expiryYears}`;
  return { behaviour: token, last4: card.last4, brand: card.brand, exp, billing_id: null };
}

/** Stores a card for a customer. The outcome of its charges is decided when it is charged. */
export function storeCard(
  space: Space,
  input: { customerId: string; card: VaultedCard; isDefault: boolean },
): PaymentMethodRecord {
  const { customerId, isDefault } = input;
  const { behaviour, last4, brand, exp, billing_id } = input.card;
  const id = space.ids.uuid();
  const record: PaymentMethodRecord = {
    id,
    customer_id: customerId,
    card: { last4, brand, exp },
    is_default: isDefault,
    created_at: space.time.iso(),
    summary: { id, card_last_four: last4, card_brand: brand },
    token: behaviour,
    billing_id,
    used: { charges: 0, refunds: 0 },
  };
  space.paymentMethods.insert(record);
  return record;
}

/** Makes a stored card the only default of its customer and announces the customer's change. */
export function makeDefault(
  space: Space,
  customer: CustomerRecord,
  card: PaymentMethodRecord,
): PaymentMethodRecord {
  for (const other of cardsOf(space, customer.id)) {
    if (other.is_default && other.id !== card.id) {
      space.paymentMethods.replace({ ...other, is_default: false });
    }
  }
  const current = { ...card, is_default: true };
  space.paymentMethods.replace(current);
  if (customer.default_payment_method_id !== card.id) {
    const changed: CustomerRecord = {
      ...customer,
      default_payment_method_id: card.id,
      updated_at: space.touch(customer.updated_at),
    };
    space.customers.replace(changed);
    space.emit("customer.updated", { kind: "customer", record: changed });
  }
  return current;
}
