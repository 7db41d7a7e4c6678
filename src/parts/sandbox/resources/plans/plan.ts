export interface PlanRecord {
  readonly id: string;
  readonly name: string;
  readonly plan_code: string;
  readonly description: string | null;
  readonly amount: number;
  readonly one_time_amount: number;
  readonly currency: string;
  readonly billing_cycle: {
    readonly interval: "day" | "month";
    readonly interval_count: number;
    readonly anchor_day: number | "signup_date" | null;
  };
  readonly billing_cycles: number;
  readonly products: readonly { readonly id: string; readonly quantity: number }[];
  readonly pricing_tiers: readonly { readonly name: string; readonly amount: number }[];
  readonly active: boolean;
  readonly created_at: string;
  readonly updated_at: string;
}
