import { Refusal } from "../refusal.ts";
import { cardOfNumber, isTestCardNumber } from "../rules/card-numbers.ts";
import type { Space } from "../space.ts";
import type { VaultedCard } from "../store/vault.ts";

/** Card data as it is captured. It lives as long as the request that carries it. */
export interface RawCard {
  number: string;
  exp_month: number;
  exp_year: number;
}

/** Refuses what needs a gateway while the merchant has none (switch `gateway_configured`). */
export function assertGateway(space: Pick<Space, "settings">): void {
  if (space.settings().gateway_configured) return;
  throw new Refusal("merchant_not_configured", "The merchant has no gateway.");
}

/** Whether a card has run out: it is good to the end of its month. */
export function isExpired({ exp_month, exp_year }: RawCard, now: Date): boolean {
  return Date.UTC(exp_year, exp_month, 1) <= now.getTime();
}

/** What the vault would keep of a card; null for a test card outside of the test environment (statement 31). */
export function readableCard(space: Space, raw: RawCard): Omit<VaultedCard, "billing_id"> | null {
  if (space.mode === "live" && isTestCardNumber(raw.number)) return null;
  return cardOfNumber(raw.number, { month: raw.exp_month, year: raw.exp_year });
}

/** A new customer vault with its first card. */
export function addCustomerVault(
  space: Space,
  card: VaultedCard,
): { vaultId: string; billingId: string } {
  const vaultId = space.ids.processorId();
  space.vault.customers.set(vaultId, []);
  return { vaultId, billingId: addBilling(space, vaultId, card) };
}

/** A card in a vault that exists; its id differs from that of the vault (statement 222). */
export function addBilling(space: Space, vaultId: string, card: VaultedCard): string {
  const billingId = space.ids.processorId();
  const known = space.vault.customers.get(vaultId) ?? [];
  space.vault.customers.set(vaultId, [...known, billingId]);
  space.vault.cards.set(billingId, { ...card, billing_id: billingId });
  return billingId;
}

/** Refuses to vault a card without a billing address where the processor wants one (switch `billing_details`). */
export function assertBillingDetails(
  space: Pick<Space, "settings">,
  details: { address?: object | null | undefined } | undefined,
): void {
  if (space.settings().billing_details === "optional") return;
  if (details?.address !== undefined && details.address !== null) return;
  const message = "The processor needs a billing address: resend with billing_details.";
  throw new Refusal("invalid_request", message, "billing_details");
}
