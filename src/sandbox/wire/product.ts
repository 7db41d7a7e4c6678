import type { ProductRecord } from "../records.ts";

/** A product (spec, Product). Images are none yet, so that expanding them gives an empty list. */
export function productBody(
  product: ProductRecord,
  expand: readonly "images"[] = [],
): Record<string, unknown> {
  return expand.includes("images") ? { ...product, images: [] } : { ...product };
}
