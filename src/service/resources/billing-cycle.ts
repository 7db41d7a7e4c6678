import { z } from "zod";

import { openEnum } from "./wire-types.ts";

const billingIntervals = ["day", "month"] as const;

/** How often a plan or subscription bills (spec, BillingCycle): monthly is month/1, weekly day/7. */
export const billingCycleSchema = z.looseObject({
  interval: openEnum(billingIntervals),
  interval_count: z.int().positive(),
  anchor_day: z
    .union([z.int(), z.string()])
    .nullish()
    .describe(
      "Month-based only: day of month 1 to 31, the last day in shorter months; or the text signup_date",
    ),
});
