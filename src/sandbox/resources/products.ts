import * as routes from "../../service/routes/products.ts";
import { answerWith, plainAnswer } from "../answer.ts";
import { listAnswer } from "../http/list.ts";
import type { Mounted } from "../http/mount.ts";
import { mounted } from "../http/mount.ts";
import { imagesOf } from "../operations/product-images.ts";
import { createProduct, deleteProduct, updateProduct } from "../operations/products.ts";
import type { ProductRecord } from "../records/product.ts";
import type { Space } from "../space.ts";
import { productImageBody } from "../wire/product-image.ts";
import { productBody } from "../wire/product.ts";
import { find } from "./find.ts";

const create = mounted(routes.createProduct, (space, { body }) =>
  answerWith(201, createProduct(space, body), productBody),
);

const list = mounted(routes.listProducts, (space, { query }) =>
  listAnswer(space, space.products, query, {
    url: "/v1/products",
    show: (product) => expandedProduct(space, product, query.expand),
    anyOf: {
      deleted: ["false"],
      ...(query.active === undefined ? {} : { active: [String(query.active)] }),
    },
    fields: query["fields[products]"],
  }),
);

const retrieve = mounted(routes.getProduct, (space, { params, query }, state) => {
  const product = find(state, space, "products", params.id);
  return plainAnswer(200, expandedProduct(space, product, query.expand));
});

const update = mounted(routes.updateProduct, (space, { params, body }, state) => {
  const product = find(state, space, "products", params.id);
  return answerWith(200, updateProduct(space, product, body), productBody);
});

const remove = mounted(routes.deleteProduct, (space, { params }, state) => {
  deleteProduct(space, find(state, space, "products", params.id));
  return plainAnswer(200, { id: params.id, deleted: true, message: "The product was deleted." });
});

/** A product with its images, when they are asked for. */
function expandedProduct(
  space: Space,
  product: ProductRecord,
  expand: readonly "images"[] = [],
): Record<string, unknown> {
  const body = productBody(product);
  if (expand.includes("images")) body.images = imagesOf(space, product.id).map(productImageBody);
  return body;
}

export const productEndpoints: readonly Mounted[] = [create, list, retrieve, update, remove];
