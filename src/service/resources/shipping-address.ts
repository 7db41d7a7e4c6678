import { z } from "zod";

/** Where goods go. Orders and subscriptions carry first and last name, customers one full name. */
export const shippingAddressSchema = z.looseObject({
  id: z.string().nullish(),
  first_name: z.string().nullish(),
  last_name: z.string().nullish(),
  full_name: z.string().nullish().describe("Customers only; the field's name is assumed"),
  address_line1: z.string().nullish(),
  address_line2: z.string().nullish(),
  city: z.string().nullish(),
  state: z.string().nullish(),
  postal_code: z.string().nullish(),
  country: z.string().nullish().describe("ISO 3166-1 alpha-2, upper case"),
  phone: z.string().nullish().describe("E.164"),
});
