import Router from "@koa/router";
import type { Context } from "koa";
import { ApiError } from "../../engine/api-error.ts";
import { gatewayKey, modes } from "../../engine/keys.ts";
import type { Space } from "../../engine/space.ts";
import type { State } from "../../engine/state.ts";
import { readBytes } from "../../http/read-request.ts";
import type { VaultedCard } from "./payment-method.ts";
import { cardOfNumber, isTestCardNumber } from "./test-cards.ts";

const maxFormBytes = 65_536;

/**
 * The card gateway's `transact.php`. The interface does not show its answer, so it is a form, as gateways of this
 * family answer, with `response` 1 (done) or 3 (refused) under HTTP 200.
 */
export function createGatewayRouter(state: () => State): Router {
  const router = new Router({ prefix: "/gateway" });
  router.post("/api/transact.php", async (ctx: Context) => {
    const bytes = await readBytes(ctx.req, maxFormBytes);
    const form = new URLSearchParams(bytes.toString("utf8"));
    ctx.type = "application/x-www-form-urlencoded";
    ctx.body = new URLSearchParams(transact(state(), form)).toString();
  });
  return router;
}

type FormAnswer = Record<string, string>;

function transact(state: State, form: URLSearchParams): FormAnswer {
  const space = spaceOfKey(state, form.get("security_key"));
  if (space === undefined) return refused("Authentication Failed");
  if (!space.settings().gateway_configured) return refused("The merchant has no gateway");
  const action = form.get("customer_vault");
  if (action !== "add_customer" && action !== "add_billing") {
    return refused("customer_vault must be add_customer or add_billing");
  }
  const vaultId = form.get("customer_vault_id") ?? "";
  if (action === "add_billing" && !space.vault.customers.has(vaultId)) {
    return refused("Invalid customer_vault_id");
  }
  const token = form.get("payment_token") ?? "";
  const card = space.vault.paymentTokens.read(token, space.time.nowMs());
  if (card === null) return refused("Payment token is invalid, expired or used");
  space.vault.paymentTokens.use(token);
  if (action === "add_billing") {
    const billing_id = addBilling(space, vaultId, card);
    return { ...done("Billing Information Added"), customer_vault_id: vaultId, billing_id };
  }
  const added = addCustomerVault(space, card);
  return {
    ...done("Customer Added"),
    customer_vault_id: added.vaultId,
    billing_id: added.billingId,
  };
}

function spaceOfKey(state: State, key: string | null): Space | undefined {
  for (const { id, spaces } of state.merchants.values()) {
    const mode = modes.find((known) => gatewayKey(id, known) === key);
    if (mode !== undefined) return spaces[mode];
  }
  return undefined;
}

const done = (text: string): FormAnswer => ({
  response: "1",
  responsetext: text,
  response_code: "100",
});

const refused = (text: string): FormAnswer => ({
  response: "3",
  responsetext: text,
  response_code: "300",
});

/** Raw card data. It lives only as long as the request that carries it. */
export interface RawCard {
  number: string;
  exp_month: number;
  exp_year: number;
}

/** Refuses calls that need a gateway while the merchant has none (setting `gateway_configured`). */
export function assertGateway(space: Pick<Space, "settings">): void {
  if (space.settings().gateway_configured) return;
  throw new ApiError("merchant_not_configured", "The merchant has no gateway.");
}

/** Whether a card has expired. It is valid to the end of its month. */
export function isExpired({ exp_month, exp_year }: RawCard, now: Date): boolean {
  return Date.UTC(exp_year, exp_month, 1) <= now.getTime();
}

/** The vault's record of a card; null for a test card outside of the test environment. */
export function readableCard(space: Space, raw: RawCard): Omit<VaultedCard, "billing_id"> | null {
  if (space.mode === "live" && isTestCardNumber(raw.number)) return null;
  return cardOfNumber(raw.number, { month: raw.exp_month, year: raw.exp_year });
}

/** Creates a customer vault with its first card. */
export function addCustomerVault(space: Space, card: VaultedCard): { vaultId: string; billingId: string } {
  const vaultId = space.ids.processorId();
  space.vault.customers.set(vaultId, []);
  return { vaultId, billingId: addBilling(space, vaultId, card) };
}

/** Adds a card to an existing vault. The billing id it returns differs from the vault's id. */
function addBilling(space: Space, vaultId: string, card: VaultedCard): string {
  const billingId = space.ids.processorId();
  const known = space.vault.customers.get(vaultId) ?? [];
  space.vault.customers.set(vaultId, [...known, billingId]);
  space.vault.cards.set(billingId, { ...card, billing_id: billingId });
  return billingId;
}

/** Refuses to vault a card without a billing address if the processor requires one (setting `billing_details`). */
export function assertBillingDetails(
  space: Pick<Space, "settings">,
  details: { address?: object | null | undefined } | undefined,
): void {
  if (space.settings().billing_details === "optional") return;
  if (details?.address !== undefined && details.address !== null) return;
  const message = "The processor needs a billing address: resend with billing_details.";
  throw new ApiError("invalid_request", message, "billing_details");
}
