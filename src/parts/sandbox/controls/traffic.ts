import type Router from "@koa/router";
import { z } from "zod";
import { generateTraffic } from "../traffic/generate.ts";
import { type ControlDeps, addControl, nothing, place, seed, spaceAt } from "./control.ts";
import { clockBody } from "./overview.ts";

const most = 1_000_000;
const howMany = z.int().min(0).max(most);

const wish = z.strictObject({
  orders: howMany.default(100),
  subscriptions: howMany.default(10),
  refunds: howMany.optional(),
  declines: howMany.optional(),
  chargebacks: howMany.optional(),
  seed: seed.default("1"),
  days: z.number().min(0).max(3660).default(30),
  past: z.boolean().default(false),
  tie_rate: z.number().min(0).max(1).default(0.02),
  ...place,
});

/** The default shares of the orders, where the request gives no number. */
const usual = { refunds: 0.08, declines: 0.06, chargebacks: 0.015 };

/**
 * `POST /_sandbox/traffic`: generates a seeded, realistic mix. Answers when it is generated; `GET /_sandbox/idle` waits
 * for its deliveries.
 */
export function addTraffic(router: Router, { state }: ControlDeps): void {
  addControl(router, {
    method: "POST",
    path: "/traffic",
    query: nothing,
    body: wish,
    async run({ body }) {
      const current = state();
      const { orders, tie_rate, merchant, mode, ...rest } = body;
      const result = await generateTraffic(current, spaceAt(current, { merchant, mode }), {
        ...rest,
        orders,
        refunds: body.refunds ?? Math.round(orders * usual.refunds),
        declines: body.declines ?? Math.round(orders * usual.declines),
        chargebacks: body.chargebacks ?? Math.round(orders * usual.chargebacks),
        tieRate: tie_rate,
      });
      return { seed: body.seed, ...result, ...clockBody(current) };
    },
  });
}
