import { Readable } from "node:stream";
import type Router from "@koa/router";
import type { Context } from "koa";
import { z } from "zod";
import { invalidValue } from "../engine/api-error.ts";
import { modes } from "../engine/keys.ts";
import type { Space } from "../engine/space.ts";
import { type Json, dumpState, jsonPieces, stateDump } from "../engine/state-dump.ts";
import type { State } from "../engine/state.ts";
import { readJsonObject, validate } from "../http/read-request.ts";
import { accountBody } from "../resources/account/account-routes.ts";
import { couponBody, couponCodeBody } from "../resources/coupons/coupon.ts";
import { customerBody } from "../resources/customers/customer.ts";
import { orderBody } from "../resources/orders/order.ts";
import { paymentMethodBody } from "../resources/payment-methods/payment-method.ts";
import { productBody } from "../resources/products/product.ts";
import { expandedSubscription } from "../resources/subscriptions/subscription.ts";
import { roleBody, teamMemberBody } from "../resources/team-members/team-member.ts";
import { transactionBody } from "../resources/transactions/transaction.ts";
import { webhookEndpointBody } from "../resources/webhook-endpoints/webhook-endpoint.ts";
import { type ControlDeps, addControl, modeQuery, nothing, seed } from "./control.ts";

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

/** `POST /_sandbox/reset`: a new, empty sandbox on a running clock. The seed stays the same unless another is given. */
export function addReset(router: Router, deps: ControlDeps): void {
  addControl(router, {
    method: "POST",
    path: "/reset",
    query: nothing,
    body: z.strictObject({ seed: seed.optional() }),
    run({ body }) {
      deps.reset(body.seed);
      const current = deps.state();
      return { ...clockBody(current), seed: current.seed };
    },
  });
}

/**
 * `GET /_sandbox/snapshot`: one environment of the first merchant, with every object as its own GET shows it, in order
 * of creation; `state` holds everything that a restart needs. The answer is streamed, since a large one does not fit in
 * one string. It still shows one moment, since records never change. `PUT` restores the `state` of such an answer, time
 * included.
 */
export function addSnapshot(router: Router, { state, wallClock, restore }: ControlDeps): void {
  addControl(router, {
    method: "GET",
    path: "/snapshot",
    query: modeQuery,
    body: nothing,
    run({ query: { mode }, ctx }) {
      const current = state();
      const head = { ...clockBody(current), mode, seed: current.seed };
      const space = current.spaces[mode];
      const { hardDeleted } = space;
      const tail = {
        account: accountBody(space),
        hard_deleted: {
          customers: [...hardDeleted.customers],
          products: [...hardDeleted.products],
        },
      };
      const shown = Object.fromEntries(sectionsOf(space));
      const dump = dumpState(current, wallClock);
      ctx.body = Readable.from(jsonPieces({ ...head, ...shown, ...tail, state: dump }));
      return undefined;
    },
  });
  router.put("/snapshot", async (ctx: Context) => {
    const { state: dump } = validate(snapshot, await readJsonObject(ctx.req, snapshotLimits));
    try {
      restore(dump);
    } catch (cause) {
      throw Object.assign(invalidValue("state", "is not what GET gave"), { cause });
    }
    const current = state();
    ctx.body = JSON.stringify({ ...clockBody(current), seed: current.seed });
  });
}

const snapshot = z.looseObject({ state: stateDump });

/** Near the longest string. What GET answered is nested more deeply than a request. */
const snapshotLimits = { maxBytes: 500_000_000, maxDepth: 64 };

type Section = [name: string, content: Json];

function sectionsOf(space: Space): Section[] {
  const nowIso = space.time.iso();
  return [
    section("orders", space.orders.all(), orderBody),
    section("transactions", space.transactions.all(), transactionBody),
    section("subscriptions", space.subscriptions.all(), (subscription) =>
      expandedSubscription(space, subscription, ["cycles"]),
    ),
    section("customers", space.customers.all(), customerBody),
    section("payment_methods", space.paymentMethods.all(), paymentMethodBody),
    section("products", space.products.all(), productBody),
    section("plans", space.plans.all(), (plan) => plan),
    section("coupons", space.coupons.all(), couponBody),
    section("coupon_codes", space.couponCodes.all(), couponCodeBody),
    section("coupon_redemptions", space.redemptions.all(), (redemption) => redemption),
    section("roles", space.roles.all(), (role) => roleBody(role, ["permissions"])),
    section("team_members", space.teamMembers.all(), teamMemberBody),
    section("outbox", space.outbox.all(), (message) => message),
    section("webhook_endpoints", space.webhookEndpoints.all(), (endpoint) => webhookEndpointBody(endpoint, nowIso)),
  ];
}

function section<T>(name: string, rows: T[], show: (record: T) => unknown): Section {
  return [name, { rows, show }];
}
