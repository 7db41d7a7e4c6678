import { z } from "zod";

import { count, timestamp, wireId } from "./wire-types.ts";

/** An image of a product (spec, ProductImage). `order` is its place in the display, from 0. */
export const productImageSchema = z.looseObject({
  id: wireId,
  product_id: wireId,
  url: z.url(),
  order: count,
  created_at: timestamp,
});
