import { z } from "zod";

import { billingCycleSchema } from "./billing-cycle.ts";
import { count, currencyCode, minorUnits, timestamp, wireId } from "./wire-types.ts";

/** What a subscription bills (spec, Plan). Read-only through the API. */
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
  products: z.array(z.looseObject({})).nullish().describe("Fields of the items are not shown"),
  pricing_tiers: z.array(z.looseObject({})).nullish().describe("Fields of the items are not shown"),
  active: z.boolean(),
  created_at: timestamp,
  updated_at: timestamp.nullish(),
});
