import type Router from "@koa/router";
import { z } from "zod";

import type { Permission } from "../../service/routes/endpoint.ts";
import { firstMerchant } from "../keys.ts";
import type { ApiKey } from "../keys.ts";
import { allEndpoints } from "../resources/all.ts";
import { isAllowlistEntry } from "../rules/allowlist.ts";
import type { State } from "../state.ts";
import type { ControlDeps } from "./control.ts";
import { addControl } from "./control.ts";
import { nothing } from "./fields.ts";
import { merchantNamed } from "./places.ts";

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
  allow: z
    .array(z.string().refine(isAllowlistEntry, "must be an address or a CIDR range"))
    .max(100)
    .optional(),
});

/** `POST /_sandbox/keys`: a key, restricted as asked for. */
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

/** Adds a key and gives its text, which repeats under the same calls. */
export function issueKey({ keys }: Pick<State, "keys">, key: ApiKey): string {
  const text = `svc_${key.mode}_sk_sandbox_${keys.size + 1}`;
  keys.set(text, key);
  return text;
}
