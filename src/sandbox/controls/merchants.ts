import type Router from "@koa/router";
import { z } from "zod";

import { gatewayKey } from "../gateway-keys.ts";
import { modes } from "../mode.ts";
import { seedCatalogue } from "../seeds.ts";
import type { ControlDeps } from "./control.ts";
import { addControl } from "./control.ts";
import { nothing } from "./fields.ts";
import { issueKey } from "./keys.ts";

const newMerchant = z.strictObject({
  name: z.string().min(1).max(200).default("Another merchant"),
  /** With the products and plans that the first merchant starts with. */
  catalogue: z.boolean().default(true),
});

const unrestricted = { permissions: "all", expires_at: null, revoked: false, allow: null } as const;

/** `POST /_sandbox/merchants`: a further merchant with its keys. Neither sees the other's objects (statement 43). */
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
      const keys = modes.map((mode) => [
        mode,
        issueKey(current, { merchant: id, mode, ...unrestricted }),
      ]);
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
