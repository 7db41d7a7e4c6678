import { z } from "zod";

import { currencyCode, metadata, minorUnits, openEnum, timestamp, wireId } from "./wire-types.ts";

export const stockStatuses = ["in_stock", "out_of_stock", "preorder"] as const;

/** What an order's items refer to (spec, Product). Descriptive fields are not shown: kept as sent. */
export const productSchema = z.looseObject({
  id: wireId,
  name: z.string(),
  description: z.string().nullish(),
  pricing: z.looseObject({
    amount: minorUnits.describe("Minor units"),
    currency: currencyCode,
  }),
  requires_shipping: z.boolean().nullish(),
  sku: z.string().nullish().describe("Unique per merchant; lower-case alphanumerics, - and _"),
  stock_status: openEnum(stockStatuses).nullish().describe("Name assumed"),
  metadata: metadata.nullish(),
  active: z.boolean().nullish().describe("Name assumed"),
  created_at: timestamp,
  updated_at: timestamp.nullish(),
});
