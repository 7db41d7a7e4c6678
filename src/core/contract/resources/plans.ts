import { z } from "zod";
import { defineEndpoint, idParam } from "../endpoint.ts";
import { booleanText, listOf, pageQuery, sortQuery } from "../lists.ts";
import { count, currencyCode, minorUnits, openEnum, timestamp, wireId } from "../wire-types.ts";

const billingIntervals = ["day", "month"] as const;

/** A billing interval: monthly is month/1, weekly day/7. */
export const billingCycleSchema = z.looseObject({
  interval: openEnum(billingIntervals),
  interval_count: z.int().positive(),
  anchor_day: z
    .union([z.int(), z.string()])
    .nullish()
    .describe("Month-based only: day of month 1 to 31, the last day in shorter months; or the text signup_date"),
});

/** The product and the terms that a subscription bills. Read-only through the API. */
export const planSchema = z.looseObject({
  id: wireId.describe("The plan_id of subscriptions"),
  name: z.string(),
  plan_code: z.string().nullish().describe("A short handle, not the plan_id"),
  description: z.string().nullish(),
  amount: minorUnits.describe("Minor units a cycle"),
  one_time_amount: minorUnits.nullish().describe("Minor units, charged in the first cycle only"),
  currency: currencyCode,
  billing_cycle: billingCycleSchema,
  billing_cycles: count.nullish().describe("0 means unlimited"),
  products: z.array(z.looseObject({})).nullish().describe("Fields of the items are not documented"),
  pricing_tiers: z.array(z.looseObject({})).nullish().describe("Fields of the items are not documented"),
  active: z.boolean(),
  created_at: timestamp,
  updated_at: timestamp.nullish(),
});

export const listPlans = defineEndpoint({
  name: "listPlans",
  method: "GET",
  path: "/plans",
  summary: "List plans",
  permission: "plans:read",
  query: pageQuery.extend(sortQuery("name", "amount").shape).extend({
    search: z.string().max(200).optional(),
    active: booleanText,
  }),
  answer: listOf(planSchema),
});

export const getPlan = defineEndpoint({
  name: "getPlan",
  method: "GET",
  path: "/plans/{id}",
  summary: "Retrieve a plan",
  permission: "plans:read",
  params: idParam,
  answer: planSchema,
  errors: ["resource_not_found"],
});
