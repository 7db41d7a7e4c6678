import type Router from "@koa/router";

import { modes } from "../mode.ts";
import type { Space } from "../space.ts";
import type { State } from "../state.ts";
import { webhookEndpointBody } from "../wire/webhook-endpoint.ts";
import type { ControlDeps } from "./control.ts";
import { addControl } from "./control.ts";
import { nothing } from "./fields.ts";

/** `GET /_sandbox`: clock, counts, keys, endpoints. */
export function addOverview(router: Router, { state }: ControlDeps): void {
  addControl(router, {
    method: "GET",
    path: "/",
    query: nothing,
    body: nothing,
    run() {
      const current = state();
      return {
        ...clockBody(current),
        seed: current.seed,
        merchants: Array.from(current.merchants.values(), ({ id, name }) => ({ id, name })),
        keys: Array.from(current.keys, ([key, details]) => ({ key, ...details })),
        counts: Object.fromEntries(modes.map((mode) => [mode, countsOf(current.spaces[mode])])),
        events: current.events.total,
        deliveries: { ...current.dispatcher.counts, pending: current.dispatcher.pending },
        endpoints: modes.flatMap((mode) =>
          current.spaces[mode].webhookEndpoints.all().map((endpoint) => ({
            ...webhookEndpointBody(endpoint, current.time.iso()),
            mode,
          })),
        ),
      };
    },
  });
}

export function clockBody({ time }: Pick<State, "time">) {
  return { clock: { now: time.iso(), mode: time.mode } };
}

function countsOf(space: Space): Record<string, number> {
  return {
    customers: space.customers.size,
    payment_methods: space.paymentMethods.size,
    products: space.products.size,
    plans: space.plans.size,
    orders: space.orders.size,
    subscriptions: space.subscriptions.size,
    transactions: space.transactions.size,
    coupons: space.coupons.size,
    coupon_codes: space.couponCodes.size,
    team_members: space.teamMembers.size,
    webhook_endpoints: space.webhookEndpoints.size,
  };
}
