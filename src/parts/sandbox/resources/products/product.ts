import type { stockStatuses } from "../../../../core/contract/resources/products.ts";
import type { Metadata } from "../../engine/store/table.ts";

export interface ProductRecord {
  readonly id: string;
  readonly name: string;
  readonly description: string | null;
  readonly pricing: { readonly amount: number; readonly currency: string };
  readonly requires_shipping: boolean;
  readonly sku: string | null;
  readonly stock_status: (typeof stockStatuses)[number];
  readonly metadata: Metadata;
  readonly active: boolean;
  readonly deleted: boolean;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface ProductImageRecord {
  readonly id: string;
  readonly product_id: string;
  readonly url: string;
  readonly created_at: string;
  /** Media type, determined by the content. */
  readonly type: string;
  readonly bytes: Buffer;
}

export function productBody(product: ProductRecord): Record<string, unknown> {
  return { ...product };
}

/** An image with its position among those of its product. */
export function productImageBody(image: ProductImageRecord, order: number): Record<string, unknown> {
  const { id, product_id, url, created_at } = image;
  return { id, product_id, url, order, created_at };
}
