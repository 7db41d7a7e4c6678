import { imagesOf } from "../operations/product-images.ts";
import type { ProductRecord } from "../records.ts";
import type { Space } from "../space.ts";
import { productImageBody } from "./product-image.ts";

/** A product (spec, Product). */
export function productBody(product: ProductRecord): Record<string, unknown> {
  return { ...product };
}

/** A product with its images, when they are asked for. */
export function expandedProduct(
  space: Space,
  product: ProductRecord,
  expand: readonly "images"[] = [],
): Record<string, unknown> {
  const body = productBody(product);
  if (expand.includes("images")) body.images = imagesOf(space, product.id).map(productImageBody);
  return body;
}
