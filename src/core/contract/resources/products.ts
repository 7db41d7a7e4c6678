import { z } from "zod";
import { defineEndpoint, deletion, idParam } from "../endpoint.ts";
import { booleanText, expandQuery, fieldsQuery, listOf, pageQuery, sortQuery } from "../lists.ts";
import { cents, currency, metadataInput, plainText } from "../request-fields.ts";
import { count, currencyCode, metadata, minorUnits, openEnum, timestamp, wireId } from "../wire-types.ts";

export const stockStatuses = ["in_stock", "out_of_stock", "preorder"] as const;

/** The product that an order's items refer to. Its descriptive fields are not documented and are kept as sent. */
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

/** An image of a product. `order` is its place in the display, from 0. */
export const productImageSchema = z.looseObject({
  id: wireId,
  product_id: wireId,
  url: z.url(),
  order: count,
  created_at: timestamp,
});

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
  query: pageQuery
    .extend(sortQuery("name").shape)
    .extend(expandQuery(["images"]).shape)
    .extend(fieldsQuery("products").shape)
    // The name of the boolean filter is assumed.
    .extend({ active: booleanText }),
  answer: listOf(productSchema),
});

export const getProduct = defineEndpoint({
  name: "getProduct",
  method: "GET",
  path: "/products/{id}",
  summary: "Retrieve a product",
  permission: "products:read",
  params: idParam,
  query: expandQuery(["images"]),
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
  body: productInput.partial().extend({ active: z.boolean().optional() }),
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
  answer: deletion,
  errors: ["resource_not_found", "product_in_active_plans"],
});

/** The service's limits: 10 MB per image, 10 images per product. */
export const maxImageBytes = 10 * 1024 * 1024;
export const maxImages = 10;

export const addProductImage = defineEndpoint({
  name: "addProductImage",
  method: "POST",
  path: "/products/{id}/images",
  summary: "Upload an image: JPEG, PNG or GIF, at most 10 MB, at most 10 a product",
  permission: "products:write",
  idempotency: "required",
  params: idParam,
  encoding: "image",
  body: z.object({
    image: z.instanceof(Buffer).meta({ override: { type: "string", format: "binary" } }),
  }),
  status: 201,
  answer: productImageSchema,
  errors: ["resource_not_found"],
});

export const deleteProductImage = defineEndpoint({
  name: "deleteProductImage",
  method: "DELETE",
  path: "/products/{id}/images/{imageId}",
  summary: "Remove an image; those after it move up",
  permission: "products:write",
  idempotency: "sent",
  params: z.object({ id: z.string(), imageId: z.string() }),
  answer: deletion,
  errors: ["resource_not_found"],
});

export const reorderProductImages = defineEndpoint({
  name: "reorderProductImages",
  method: "PATCH",
  path: "/products/{id}/images/reorder",
  summary: "Put the images in the order of their ids",
  permission: "products:write",
  idempotency: "sent",
  params: idParam,
  body: z.object({ image_ids: z.array(z.string()).max(100) }),
  answer: z.object({ data: z.array(productImageSchema) }),
  errors: ["resource_not_found"],
});
