import type { CustomerRecord, PaymentMethodRecord } from "../records.ts";
import { invalidValue } from "../refusal.ts";
import { testCards } from "../rules/cards.ts";
import type { Space } from "../space.ts";

/** Every test card expires then; the interface asks for any future expiry. */
const expiryYears = 4;

/** A customer's cards, oldest first. */
export function cardsOf(space: Space, customerId: string): PaymentMethodRecord[] {
  return space.paymentMethods.inGroup("customer_id", customerId);
}

/**
 * Refuses what is no test card token. `param` is the field that carried it. Live keys have no test cards
 * (spec, Sandbox), and vaults of the gateway are not emulated yet.
 */
export function assertCardToken(space: Space, token: string, param: string): void {
  if (space.mode === "live" || !Object.hasOwn(testCards, token)) {
    throw invalidValue(param, "No such card in the gateway's vault.");
  }
}

/** Stores a test card for a customer. The outcome of its charges is decided when it is charged. */
export function storeCard(
  space: Space,
  input: { customerId: string; token: string; isDefault: boolean },
): PaymentMethodRecord {
  const { token, customerId, isDefault } = input;
  const card = testCards[token];
  if (card === undefined) throw new Error(`no test card ${token}`);
  const id = space.ids.uuid();
  const expiry = space.time.now();
  const exp = `${String(expiry.getUTCMonth() + 1).padStart(2, "0")}/${expiry.getUTCFullYear() + expiryYears}`;
  const record: PaymentMethodRecord = {
    id,
    customer_id: customerId,
    card: { last4: card.last4, brand: card.brand, exp },
    is_default: isDefault,
    created_at: space.time.iso(),
    summary: { id, card_last_four: card.last4, card_brand: card.brand },
    token,
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
