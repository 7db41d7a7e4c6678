import type { Metadata } from "../store/table.ts";

export interface AddressRecord {
  readonly id: string;
  readonly first_name: string;
  readonly last_name: string;
  readonly address_line1: string;
  readonly address_line2: string | null;
  readonly city: string;
  readonly state: string;
  readonly postal_code: string;
  readonly country: string;
  readonly phone: string | null;
}

export interface CustomerRecord {
  readonly id: string;
  readonly email: string;
  readonly first_name: string | null;
  readonly last_name: string | null;
  readonly phone: string | null;
  readonly company: string | null;
  readonly shipping_address: AddressRecord | null;
  readonly metadata: Metadata;
  readonly default_payment_method_id: string | null;
  readonly deleted: boolean;
  readonly created_at: string;
  readonly updated_at: string;
}
