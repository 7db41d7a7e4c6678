import type { Knex } from "knex";
import { apply, sampleOrder, sampleSubscription, seen } from "../mirror/samples.ts";

export interface UnpaidRenewal {
  id: string;
  createdAt: string;
  /** Minor units. */
  total: number;
  currency?: string;
  cycle?: number | null;
  status?: string;
}

/** Brings into the mirror a past due subscription with renewals that were declined, each of a cycle of its own. */
export async function pastDue(db: Knex, renewals: readonly UnpaidRenewal[]): Promise<void> {
  await apply(db, seen("subscription", sampleSubscription({ status: "past_due" }), 1));
  for (const [n, renewal] of renewals.entries()) {
    const { id, createdAt, total, currency = "usd", cycle = n + 2, status = "failed" } = renewal;
    const times = { created_at: createdAt, updated_at: createdAt };
    const charge = { subscription_id: "subscription-1", subscription_cycle: cycle };
    const money = { subtotal: total, discount_amount: 0, total, currency };
    await apply(db, seen("order", sampleOrder({ id, status, ...times, ...charge, ...money }), 1));
  }
}
