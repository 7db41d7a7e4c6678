import type Router from "@koa/router";
import { z } from "zod";
import type { Permission } from "../../../core/contract/endpoint.ts";
import { usableVersion } from "../engine/api-versions.ts";
import { type ApiKey, firstMerchant, gatewayKey, isAllowlistEntry, modes } from "../engine/keys.ts";
import type { State } from "../engine/state.ts";
import { accountBody } from "../resources/account/account-routes.ts";
import { allEndpoints } from "../resources/all-endpoints.ts";
import { seedCatalogue } from "../resources/seed-catalogue.ts";
import { type ControlDeps, addControl, merchantNamed, nothing, place, spaceAt } from "./control.ts";

const newMerchant = z.strictObject({
  name: z.string().min(1).max(200).default("Another merchant"),
  /** Whether it gets the products and plans that the first merchant has from the start. */
  catalogue: z.boolean().default(true),
});

const unrestricted = { permissions: "all", expires_at: null, revoked: false, allow: null } as const;

/** `POST /_sandbox/merchants`: adds a merchant with its keys. No merchant sees the objects of another. */
export function addMerchants(router: Router, { state }: ControlDeps): void {
  addControl(router, {
    method: "POST",
    path: "/merchants",
    query: nothing,
    body: newMerchant,
    run({ body }) {
      const current = state();
      const id = `merchant_${current.merchants.size + 1}`;
      const { name, spaces } = current.addMerchant(id, body.name);
      if (body.catalogue) for (const mode of modes) seedCatalogue(spaces[mode]);
      const keys = modes.map((mode) => [mode, issueKey(current, { merchant: id, mode, ...unrestricted })]);
      const gateway_keys = modes.map((mode) => [mode, gatewayKey(id, mode)]);
      return {
        id,
        name,
        keys: Object.fromEntries(keys),
        gateway_keys: Object.fromEntries(gateway_keys),
      };
    },
  });
}

const permissions = [...new Set(allEndpoints.map(({ endpoint }) => endpoint.permission))] as [
  Permission,
  ...Permission[],
];

const newKey = z.strictObject({
  mode: z.enum(["test", "live"]),
  merchant: z.string().max(100).default(firstMerchant),
  permissions: z.array(z.enum(permissions)).optional(),
  expires_at: z.iso.datetime({ offset: true }).optional(),
  revoked: z.boolean().default(false),
  /** Addresses and CIDR ranges. */
  allow: z.array(z.string().refine(isAllowlistEntry, "must be an address or a CIDR range")).max(100).optional(),
});

/** `POST /_sandbox/keys`: adds a key with the given restrictions. */
export function addKeys(router: Router, { state }: ControlDeps): void {
  addControl(router, {
    method: "POST",
    path: "/keys",
    query: nothing,
    body: newKey,
    run({ body }) {
      const current = state();
      merchantNamed(current, body.merchant);
      const { mode, merchant, revoked } = body;
      const key = issueKey(current, {
        mode,
        merchant,
        revoked,
        permissions: body.permissions ?? "all",
        expires_at: body.expires_at ?? null,
        allow: body.allow ?? null,
      });
      return { key, ...body };
    },
  });
}

/** Adds a key and returns its text. The same calls give the same text. */
function issueKey({ keys }: Pick<State, "keys">, key: ApiKey): string {
  const text = `svc_${key.mode}_sk_sandbox_${keys.size + 1}`;
  keys.set(text, key);
  return text;
}

const pin = z.strictObject({ api_version: z.string().nullable(), ...place });

/**
 * `PUT /_sandbox/account`: pins the account to a version, as for an account opened when that version was new; null
 * removes the pin.
 */
export function addAccount(router: Router, { state }: ControlDeps): void {
  addControl(router, {
    method: "PUT",
    path: "/account",
    query: nothing,
    body: pin,
    run({ body }) {
      const space = spaceAt(state(), body);
      const { api_version } = body;
      space.account.api_version = api_version === null ? null : usableVersion(api_version, "api_version").version;
      return accountBody(space);
    },
  });
}
