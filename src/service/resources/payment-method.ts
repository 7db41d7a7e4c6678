import { z } from "zod";

import { openEnum, timestamp, wireId } from "./wire-types.ts";

const paymentMethodTypes = ["card"] as const;

/** A stored card (spec, PaymentMethod). Only the last four digits are ever known. */
export const paymentMethodSchema = z.looseObject({
  id: wireId,
  type: openEnum(paymentMethodTypes).nullish(),
  card: z
    .looseObject({
      last4: z.string().nullish(),
      brand: z.string().nullish().describe("Name assumed"),
      exp: z.string().nullish().describe("MM/YYYY; name assumed"),
    })
    .nullish(),
  customer_id: wireId.nullish(),
  is_default: z.boolean().nullish().describe("Name assumed"),
  created_at: timestamp.nullish(),
});

/** A card as orders, transactions and subscriptions summarise it. */
export const paymentMethodSummarySchema = z.looseObject({
  id: z.string().nullish(),
  card_last_four: z.string().nullish(),
  card_brand: z.string().nullish(),
});
