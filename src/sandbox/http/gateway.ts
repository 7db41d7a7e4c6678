import Router from "@koa/router";
import type { Context } from "koa";

import { gatewayKey } from "../gateway-keys.ts";
import { modes } from "../mode.ts";
import { addBilling, addCustomerVault } from "../operations/gateway.ts";
import type { Space } from "../space.ts";
import type { State } from "../state.ts";
import { readBytes } from "./read-body.ts";

const maxFormBytes = 65_536;

/**
 * The card gateway's `transact.php` (spec, Card data and vaulting). Its answer is not shown: a form, as gateways of this family
 * answer, with `response` 1 (done) or 3 (refused) under HTTP 200.
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
