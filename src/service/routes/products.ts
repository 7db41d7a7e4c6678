import { z } from "zod";

import { productSchema, stockStatuses } from "../resources/product.ts";
import { defineEndpoint } from "./endpoint.ts";
import {
  booleanText,
  expandQuery,
  fieldsQuery,
  listOf,
  pageQuery,
  sortQuery,
} from "./list-query.ts";
import { cents, currency, metadataInput, plainText } from "./request-fields.ts";
import { deletion, idParam, noBody, noParams, noQuery } from "./shared.ts";

const productInput = z.object({
  name: plainText(),
  description: plainText(5000).nullish(),
  pricing: z.object({ amount: cents, currency }),
  requires_shipping: z.boolean().optional(),
  sku: z
    .string()
    .max(100)
    .regex(/^[a-z0-9_-]+$/, "must be lower-case letters, digits, - and _")
    .nullish(),
  stock_status: z.enum(stockStatuses).optional(),
  metadata: metadataInput.optional(),
});

export const createProduct = defineEndpoint({
  name: "createProduct",
  method: "POST",
  path: "/products",
  summary: "Create a product",
  permission: "products:write",
  idempotency: "required",
  params: noParams,
  query: noQuery,
  body: productInput,
  status: 201,
  answer: productSchema,
  errors: ["sku_already_exists"],
});

export const listProducts = defineEndpoint({
  name: "listProducts",
  method: "GET",
  path: "/products",
  summary: "List products",
  permission: "products:read",
  idempotency: "none",
  params: noParams,
  query: pageQuery
    .extend(sortQuery("name").shape)
    .extend(expandQuery(["images"]).shape)
    .extend(fieldsQuery("products").shape)
    // The name of the boolean filter is not shown.
    .extend({ active: booleanText }),
  body: noBody,
  status: 200,
  answer: listOf(productSchema),
  errors: [],
});

export const getProduct = defineEndpoint({
  name: "getProduct",
  method: "GET",
  path: "/products/{id}",
  summary: "Retrieve a product",
  permission: "products:read",
  idempotency: "none",
  params: idParam,
  query: expandQuery(["images"]),
  body: noBody,
  status: 200,
  answer: productSchema,
  errors: ["resource_not_found"],
});

export const updateProduct = defineEndpoint({
  name: "updateProduct",
  method: "PATCH",
  path: "/products/{id}",
  summary: "Change a product; omitted fields stay",
  permission: "products:write",
  idempotency: "sent",
  params: idParam,
  query: noQuery,
  body: productInput.partial().extend({ active: z.boolean().optional() }),
  status: 200,
  answer: productSchema,
  errors: ["resource_not_found", "sku_already_exists"],
});

export const deleteProduct = defineEndpoint({
  name: "deleteProduct",
  method: "DELETE",
  path: "/products/{id}",
  summary: "Delete a product: softly when there are orders",
  permission: "products:write",
  idempotency: "sent",
  params: idParam,
  query: noQuery,
  body: noBody,
  status: 200,
  answer: deletion,
  errors: ["resource_not_found", "product_in_active_plans"],
});
