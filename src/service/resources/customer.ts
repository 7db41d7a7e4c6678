import { z } from "zod";

import { paymentMethodSchema } from "./payment-method.ts";
import { shippingAddressSchema } from "./shipping-address.ts";
import { metadata, timestamp, wireId } from "./wire-types.ts";

/** A buyer (spec, Customer). */
export const customerSchema = z.looseObject({
  id: wireId,
  email: z.string().nullable().describe("Unique per merchant"),
  first_name: z.string().nullish(),
  last_name: z.string().nullish(),
  phone: z.string().nullish().describe("E.164, unique per merchant"),
  company: z.string().nullish(),
  shipping_address: shippingAddressSchema.nullish(),
  metadata: metadata.nullish(),
  default_payment_method_id: z.string().nullish().describe("Name assumed"),
  payment_methods: z
    .array(paymentMethodSchema)
    .nullish()
    .describe("With expand=payment_methods; name assumed"),
  deleted: z.boolean().nullish().describe("True on a soft-deleted customer"),
  created_at: timestamp,
  updated_at: timestamp.nullish().describe("Absent in an event: the event's created_at stands in"),
});
