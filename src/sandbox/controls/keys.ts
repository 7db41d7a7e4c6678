import type Router from "@koa/router";
import { z } from "zod";

import type { Permission } from "../../service/routes/endpoint.ts";
import { allEndpoints } from "../resources/all.ts";
import type { ControlDeps } from "./control.ts";
import { addControl } from "./control.ts";
import { nothing } from "./fields.ts";

const permissions = [...new Set(allEndpoints.map(({ endpoint }) => endpoint.permission))] as [
  Permission,
  ...Permission[],
];

const newKey = z.strictObject({
  mode: z.enum(["test", "live"]),
  permissions: z.array(z.enum(permissions)).optional(),
  expires_at: z.iso.datetime({ offset: true }).optional(),
  revoked: z.boolean().default(false),
  allow: z.array(z.string()).optional(),
});

/** `POST /_sandbox/keys`: a key, restricted as asked for. */
export function addKeys(router: Router, { state }: ControlDeps): void {
  addControl(router, {
    method: "POST",
    path: "/keys",
    query: nothing,
    body: newKey,
    run({ body }) {
      const { keys } = state();
      const key = `svc_${body.mode}_sk_sandbox_${keys.size + 1}`;
      keys.set(key, {
        mode: body.mode,
        permissions: body.permissions ?? "all",
        expires_at: body.expires_at ?? null,
        revoked: body.revoked,
        allow: body.allow ?? null,
      });
      return { key, ...body };
    },
  });
}
