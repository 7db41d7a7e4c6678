import type Router from "@koa/router";
import { z } from "zod";

import {
  billingCycleInput,
  cents,
  currency,
  plainText,
} from "../../service/routes/request-fields.ts";
import type { PlanRecord } from "../records/plan.ts";
import { notFound } from "../refusal.ts";
import type { Space } from "../space.ts";
import type { ControlDeps } from "./control.ts";
import { addControl } from "./control.ts";
import { nothing } from "./fields.ts";
import { place, spaceAt } from "./places.ts";

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

/** `POST /_sandbox/plans`: a plan, as the merchant portal makes them; the API can only read them (spec, Plan). */
export function addPlans(router: Router, { state }: ControlDeps): void {
  addControl(router, {
    method: "POST",
    path: "/plans",
    query: nothing,
    body: newPlan,
    run: ({ body: { merchant, mode, ...wish } }) =>
      createPlan(spaceAt(state(), { merchant, mode }), wish),
  });
}

function createPlan(
  space: Space,
  wish: Omit<z.output<typeof newPlan>, "merchant" | "mode">,
): PlanRecord {
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
