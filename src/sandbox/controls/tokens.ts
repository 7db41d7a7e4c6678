import type Router from "@koa/router";
import { z } from "zod";

import { isExpired, readableCard } from "../operations/gateway.ts";
import { Refusal } from "../refusal.ts";
import type { ControlDeps } from "./control.ts";
import { addControl } from "./control.ts";
import { nothing } from "./fields.ts";
import { place, spaceAt } from "./places.ts";

const card = z.strictObject({
  number: z.string().regex(/^\d{12,19}$/, "must be 12 to 19 digits"),
  exp_month: z.int().min(1).max(12).default(12),
  exp_year: z.int().min(2000).max(2100).default(2099),
  cvc: z
    .string()
    .regex(/^\d{3,4}$/, "must be 3 or 4 digits")
    .default("999"),
  ...place,
});

/**
 * `POST /_sandbox/payment_tokens` and `/card_tokens`: what the gateway's hosted fields and the browser's capture SDK would
 * have made of a card. One use, 15 minutes of the sandbox's clock.
 */
export function addTokens(router: Router, { state }: ControlDeps): void {
  for (const [path, prefix, store] of [
    ["/payment_tokens", "payment_token", "paymentTokens"],
    ["/card_tokens", "card_token", "cardTokens"],
  ] as const) {
    addControl(router, {
      method: "POST",
      path,
      query: nothing,
      body: card,
      run({ body }) {
        const space = spaceAt(state(), body);
        const { number, exp_month, exp_year } = body;
        const raw = { number, exp_month, exp_year };
        const readable = isExpired(raw, space.time.now()) ? null : readableCard(space, raw);
        if (readable === null) {
          throw new Refusal("invalid_value", "The card cannot be read or verified.", "number");
        }
        const token = `${prefix}_${space.ids.uuid()}`;
        space.vault[store].issue(token, { ...readable, billing_id: null }, space.time.nowMs());
        return { [prefix]: token };
      },
    });
  }
}
