import type { stockStatuses } from "../../service/resources/product.ts";
import type { Metadata } from "../store/table.ts";

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
  /** Media type, by content. */
  readonly type: string;
  readonly bytes: Buffer;
}
