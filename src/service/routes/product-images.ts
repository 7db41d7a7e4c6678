import { z } from "zod";

import { productImageSchema } from "../resources/product-image.ts";
import { defineEndpoint } from "./endpoint.ts";
import { deletion, idParam, noBody, noQuery } from "./shared.ts";

/** Spec, Limits: 10 MB each, 10 a product. */
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
  query: noQuery,
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
  query: noQuery,
  body: noBody,
  status: 200,
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
  query: noQuery,
  body: z.object({ image_ids: z.array(z.string()).max(100) }),
  status: 200,
  answer: z.object({ data: z.array(productImageSchema) }),
  errors: ["resource_not_found"],
});
