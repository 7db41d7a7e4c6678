import { z } from "zod";
import { defineEndpoint, deletion, idParam } from "../endpoint.ts";
import {
  booleanText,
  commaList,
  createdAtQuery,
  expandQuery,
  fieldsQuery,
  listOf,
  pageQuery,
  sortQuery,
} from "../lists.ts";
import { customerAddressInput, email, metadataInput, phone, plainText } from "../request-fields.ts";
import { metadata, timestamp, wireId } from "../wire-types.ts";
import { paymentMethodSchema } from "./payment-methods.ts";

/** Orders and subscriptions carry first and last name, customers one full name. */
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
  payment_methods: z.array(paymentMethodSchema).nullish().describe("With expand=payment_methods; name assumed"),
  deleted: z.boolean().nullish().describe("True on a soft-deleted customer"),
  created_at: timestamp,
  updated_at: timestamp.nullish().describe("Absent in an event: the event's created_at stands in"),
});

/** Which fields creation requires is not documented: the e-mail address is assumed. */
const customerInput = z.object({
  email,
  first_name: plainText().nullish(),
  last_name: plainText().nullish(),
  phone: phone.nullish(),
  company: plainText().nullish(),
  shipping_address: customerAddressInput.nullish(),
  metadata: metadataInput.optional(),
  svc_gateway_customer_vault_id: z.string().min(1).max(255).optional(),
});

export const createCustomer = defineEndpoint({
  name: "createCustomer",
  method: "POST",
  path: "/customers",
  summary: "Create a customer, with a card when a vault id is sent",
  permission: "customers:write",
  idempotency: "sent",
  body: customerInput,
  status: 201,
  answer: customerSchema,
  errors: ["email_already_exists", "phone_already_exists", "merchant_not_configured"],
});

export const listCustomers = defineEndpoint({
  name: "listCustomers",
  method: "GET",
  path: "/customers",
  summary: "List customers",
  permission: "customers:read",
  query: pageQuery
    .extend(sortQuery().shape)
    .extend(createdAtQuery.shape)
    .extend(expandQuery(["payment_methods"]).shape)
    .extend(fieldsQuery("customers").shape)
    .extend({
      email: z.string().optional(),
      q: z.string().max(200).optional(),
      deleted: booleanText,
      // The interface has a filter of several strings; its name is assumed.
      ids: commaList,
    }),
  answer: listOf(customerSchema),
});

export const getCustomer = defineEndpoint({
  name: "getCustomer",
  method: "GET",
  path: "/customers/{id}",
  summary: "Retrieve a customer",
  permission: "customers:read",
  params: idParam,
  query: expandQuery(["payment_methods", "subscriptions"]),
  answer: customerSchema,
  errors: ["resource_not_found"],
});

export const updateCustomer = defineEndpoint({
  name: "updateCustomer",
  method: "PATCH",
  path: "/customers/{id}",
  summary: "Change a customer; omitted fields stay",
  permission: "customers:write",
  idempotency: "sent",
  params: idParam,
  body: customerInput.partial(),
  answer: customerSchema,
  errors: [
    "resource_not_found",
    "email_already_exists",
    "phone_already_exists",
    "merchant_not_configured",
    "invalid_state_transition",
  ],
});

export const deleteCustomer = defineEndpoint({
  name: "deleteCustomer",
  method: "DELETE",
  path: "/customers/{id}",
  summary: "Delete a customer: softly when there are orders",
  permission: "customers:write",
  idempotency: "sent",
  params: idParam,
  answer: deletion,
  errors: ["resource_not_found", "customer_has_active_subscriptions"],
});
