import type { ProductRecord } from "../records/product.ts";

/** A product (spec, Product). */
export function productBody(product: ProductRecord): Record<string, unknown> {
  return { ...product };
}
