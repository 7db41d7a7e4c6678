import type Router from "@koa/router";
import { z } from "zod";
import { billingCycleInput, cents, currency, plainText } from "../../../core/contract/request-fields.ts";
import { ApiError, notFound } from "../engine/api-error.ts";
import { modes } from "../engine/keys.ts";
import type { Space } from "../engine/space.ts";
import type { State } from "../engine/state.ts";
import {
  acceptChargeback,
  dismissChargeback,
  openChargeback,
  voidOrder,
} from "../resources/orders/order-transitions.ts";
import { type OrderRecord, orderBody } from "../resources/orders/order.ts";
import { isExpired, readableCard } from "../resources/payment-methods/card-gateway.ts";
import type { PlanRecord } from "../resources/plans/plan.ts";
import { acceptInvitation, blockMember } from "../resources/team-members/team-member-routes.ts";
import { type TeamMemberRecord, teamMemberBody } from "../resources/team-members/team-member.ts";
import { type ControlDeps, addControl, nothing, place, spaceAt } from "./control.ts";

const newPlan = z.strictObject({
  name: plainText(),
  plan_code: z
    .string()
    .regex(/^[a-z0-9_-]{1,100}$/, "must be lower-case letters, digits, - and _")
    .optional(),
  description: plainText(5000).nullable().default(null),
  amount: cents,
  one_time_amount: cents.default(0),
  currency: currency.default("usd"),
  billing_cycle: billingCycleInput.default({ interval: "month", interval_count: 1 }),
  billing_cycles: z.int().nonnegative().max(10_000).default(0),
  products: z
    .array(z.strictObject({ id: z.string(), quantity: z.int().positive().default(1) }))
    .max(100)
    .default([]),
  active: z.boolean().default(true),
  ...place,
});

/** `POST /_sandbox/plans`: creates a plan, as the merchant portal does; the API can only read plans. */
export function addPlans(router: Router, { state }: ControlDeps): void {
  addControl(router, {
    method: "POST",
    path: "/plans",
    query: nothing,
    body: newPlan,
    run: ({ body: { merchant, mode, ...wish } }) => createPlan(spaceAt(state(), { merchant, mode }), wish),
  });
}

function createPlan(space: Space, wish: Omit<z.output<typeof newPlan>, "merchant" | "mode">): PlanRecord {
  for (const { id } of wish.products) {
    if (space.products.get(id) === undefined) throw notFound("product", "products");
  }
  const { interval, interval_count, anchor_day } = wish.billing_cycle;
  const id = space.ids.uuid();
  const at = space.time.iso();
  const plan: PlanRecord = {
    ...wish,
    id,
    plan_code: wish.plan_code ?? `plan-${id.slice(0, 8)}`,
    billing_cycle: {
      interval,
      interval_count,
      anchor_day: interval === "month" ? (anchor_day ?? "signup_date") : null,
    },
    pricing_tiers: [],
    created_at: at,
    updated_at: at,
  };
  space.plans.insert(plan);
  return plan;
}

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
 * `POST /_sandbox/payment_tokens` and `/card_tokens`: the tokens that the gateway's hosted fields and the browser's
 * capture SDK would make of a card. A token is good for one use within 15 minutes of the sandbox's clock.
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
          throw new ApiError("invalid_value", "The card cannot be read or verified.", "number");
        }
        const token = `${prefix}_${space.ids.uuid()}`;
        space.vault[store].issue(token, { ...readable, billing_id: null }, space.time.nowMs());
        return { [prefix]: token };
      },
    });
  }
}

const orderMoves = {
  chargeback: openChargeback,
  chargeback_accept: acceptChargeback,
  chargeback_dismiss: dismissChargeback,
  void: voidOrder,
} as const;

/** `POST /_sandbox/orders/{id}/chargeback` and its siblings: transitions that no call of the service causes. */
export function addOrderControls(router: Router, { state }: ControlDeps): void {
  for (const [name, move] of Object.entries(orderMoves)) {
    addControl(router, {
      method: "POST",
      path: `/orders/:id/${name}`,
      query: nothing,
      body: nothing,
      run({ params }) {
        const { space, order } = orderAnywhere(state(), params["id"] ?? "");
        return state().time.freezeDuring(() => orderBody(move(space, order)));
      },
    });
  }
}

function orderAnywhere(state: State, id: string): { space: Space; order: OrderRecord } {
  for (const { spaces } of state.merchants.values()) {
    for (const mode of modes) {
      const order = spaces[mode].orders.get(id);
      if (order !== undefined) return { space: spaces[mode], order };
    }
  }
  throw notFound("order");
}

const memberMoves = { accept: acceptInvitation, block: blockMember } as const;

/**
 * `POST /_sandbox/team_members/{id}/accept|block`: acts of the invited person, or of the account's owner, outside the
 * API.
 */
export function addTeamMembers(router: Router, { state }: ControlDeps): void {
  for (const [name, move] of Object.entries(memberMoves)) {
    addControl(router, {
      method: "POST",
      path: `/team_members/:id/${name}`,
      query: nothing,
      body: nothing,
      run({ params }) {
        const { space, member } = memberAnywhere(state(), params["id"] ?? "");
        return teamMemberBody(move(space, member));
      },
    });
  }
}

function memberAnywhere(state: State, id: string): { space: Space; member: TeamMemberRecord } {
  for (const { spaces } of state.merchants.values()) {
    for (const mode of modes) {
      const member = spaces[mode].teamMembers.get(id);
      if (member !== undefined) return { space: spaces[mode], member };
    }
  }
  throw notFound("team member");
}
