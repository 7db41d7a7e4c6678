import * as routes from "../../../../core/contract/resources/products.ts";
import { answerWith, plainAnswer } from "../../engine/answer.ts";
import { ApiError } from "../../engine/api-error.ts";
import type { Space } from "../../engine/space.ts";
import type { Metadata } from "../../engine/store/table.ts";
import { listAnswer } from "../../http/list.ts";
import { type Mounted, mounted } from "../../http/mount.ts";
import { find } from "../find.ts";
import { imagesOf } from "./product-images.ts";
import { type ProductRecord, productBody, productImageBody } from "./product.ts";

const create = mounted(routes.createProduct, (space, { body }) =>
  answerWith(201, createProduct(space, body), productBody),
);

const list = mounted(routes.listProducts, (space, { query }) =>
  listAnswer(space, space.products, query, {
    url: `/v1${routes.listProducts.path}`,
    show: (product) => expandedProduct(space, product, query.expand),
    test: ({ active, deleted }) => !deleted && active === (query.active ?? active),
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

/** A product, with its images if requested. */
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

export interface ProductInput {
  name?: string | undefined;
  description?: string | null | undefined;
  pricing?: ProductRecord["pricing"] | undefined;
  requires_shipping?: boolean | undefined;
  sku?: string | null | undefined;
  stock_status?: ProductRecord["stock_status"] | undefined;
  metadata?: Metadata | undefined;
  active?: boolean | undefined;
}

function createProduct(
  space: Space,
  input: ProductInput & { name: string; pricing: ProductRecord["pricing"] },
): ProductRecord {
  assertSkuUnused(space, input.sku, null);
  const at = space.time.iso();
  const product: ProductRecord = {
    id: space.ids.uuid(),
    name: input.name,
    description: input.description ?? null,
    pricing: input.pricing,
    requires_shipping: input.requires_shipping ?? false,
    sku: input.sku ?? null,
    stock_status: input.stock_status ?? "in_stock",
    metadata: input.metadata ?? {},
    active: true,
    deleted: false,
    created_at: at,
    updated_at: at,
  };
  space.products.insert(product);
  if (product.sku !== null) space.skus.set(product.sku, product.id);
  return product;
}

/** Changes the fields that were sent. Existing orders keep the price at which they were made. */
function updateProduct(space: Space, product: ProductRecord, input: ProductInput): ProductRecord {
  assertSkuUnused(space, input.sku, product.id);
  const fields = Object.fromEntries(
    Object.entries(input).filter(([, value]) => value !== undefined),
  ) as Partial<ProductRecord>;
  if (Object.keys(fields).length === 0) return product;
  const changed = { ...product, ...fields, updated_at: space.touch(product.updated_at) };
  if (product.sku !== null) space.skus.delete(product.sku);
  if (changed.sku !== null) space.skus.set(changed.sku, changed.id);
  space.products.replace(changed);
  return changed;
}

/** Deletes a product: softly when orders or plans refer to it, hard otherwise. */
function deleteProduct(space: Space, product: ProductRecord): void {
  if (product.deleted) return;
  const plans = space.plans.all().filter((plan) => plan.products.some(({ id }) => id === product.id));
  if (plans.some((plan) => plan.active)) {
    throw new ApiError("product_in_active_plans", "The product is part of active plans.");
  }
  if (plans.length > 0 || wasOrdered(space, product.id)) {
    const updated_at = space.touch(product.updated_at);
    space.products.replace({ ...product, deleted: true, active: false, updated_at });
    return;
  }
  if (product.sku !== null) space.skus.delete(product.sku);
  space.images.delete(product.id);
  space.products.delete(product.id);
  space.hardDeleted.products.push(product.id);
}

function wasOrdered(space: Space, productId: string): boolean {
  return space.orders.byCreation.some(({ value: order }) => order.items.some((item) => item.product_id === productId));
}

function assertSkuUnused(space: Space, sku: string | null | undefined, ownId: string | null): void {
  const owner = typeof sku === "string" ? space.skus.get(sku) : undefined;
  if (owner !== undefined && owner !== ownId) {
    throw new ApiError("sku_already_exists", "Another product has this SKU.", "sku");
  }
}
