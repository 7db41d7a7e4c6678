import type { ProductImageRecord } from "../records/product.ts";

/** An image with its place among those of its product (spec, ProductImage). */
export function productImageBody(
  image: ProductImageRecord,
  order: number,
): Record<string, unknown> {
  const { id, product_id, url, created_at } = image;
  return { id, product_id, url, order, created_at };
}
