import { Readable } from "node:stream";

import type Router from "@koa/router";
import type { Context } from "koa";
import { z } from "zod";

import { readJsonObject } from "../http/read-body.ts";
import { validate } from "../http/validate.ts";
import { accountBody } from "../operations/upgrade-api-version.ts";
import { dumpState } from "../persistence/dump-state.ts";
import type { Json } from "../persistence/json-text.ts";
import { jsonPieces } from "../persistence/json-text.ts";
import { stateDump } from "../persistence/restore-state.ts";
import { invalidValue } from "../refusal.ts";
import type { Space } from "../space.ts";
import { couponBody, couponCodeBody } from "../wire/coupon.ts";
import { customerBody } from "../wire/customer.ts";
import { orderBody } from "../wire/order.ts";
import { paymentMethodBody } from "../wire/payment-method.ts";
import { productBody } from "../wire/product.ts";
import { expandedSubscription } from "../wire/subscription.ts";
import { roleBody, teamMemberBody } from "../wire/team.ts";
import { transactionBody } from "../wire/transaction.ts";
import { webhookEndpointBody } from "../wire/webhook-endpoint.ts";
import type { ControlDeps } from "./control.ts";
import { addControl } from "./control.ts";
import { modeQuery, nothing } from "./fields.ts";
import { clockBody } from "./overview.ts";

/**
 * `GET /_sandbox/snapshot`: one environment of the first merchant, every object as its own GET shows it, in order of creation, and
 * under `state` all that a restart needs. Streamed, since a large one is longer than a string can be; it is one moment all the same,
 * since records never change. `PUT` restores the `state` of such an answer, time included.
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

/** As long as a string can be; what GET gave is nested more deeply than a request is. */
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
    section("webhook_endpoints", space.webhookEndpoints.all(), (endpoint) =>
      webhookEndpointBody(endpoint, nowIso),
    ),
  ];
}

function section<T>(name: string, rows: T[], show: (record: T) => unknown): Section {
  return [name, { rows, show }];
}
