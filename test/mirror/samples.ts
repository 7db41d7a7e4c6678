import type { Knex } from "knex";
import { type ApplyResult, applySnapshots } from "../../src/core/mirror/write/apply.ts";
import type { Snapshot, Resource } from "../../src/core/mirror/snapshot.ts";
import { canonicalTimestamp } from "../../src/core/contract/timestamp.ts";

type Wire = Record<string, unknown>;

/** 12:00 on a day in March, so many seconds later. */
export const at = (seconds: number): string => new Date(Date.UTC(2025, 2, 1, 12) + seconds * 1_000).toISOString();

export const sampleOrder = (fields: Wire = {}): Wire => ({
  id: "order-1",
  order_number: "AB12CD34",
  customer_id: "customer-1",
  status: "succeeded",
  subtotal: 1_200,
  discount_amount: 200,
  total: 1_000,
  currency: "usd",
  created_at: at(0),
  updated_at: at(0),
  ...fields,
});

export const sampleEntry = (fields: Wire = {}): Wire => ({
  id: "sale-1",
  type: "sale",
  status: "succeeded",
  amount: 1_000,
  currency: "usd",
  processor_transaction_id: "p-1",
  attempt_count: 1,
  created_at: at(0),
  updated_at: at(0),
  ...fields,
});

export const sampleTransaction = (fields: Wire = {}): Wire => ({
  id: "sale-1",
  type: "sale",
  status: "succeeded",
  amount: 1_000,
  currency: "usd",
  customer_id: "customer-1",
  order_id: "order-1",
  created_at: at(0),
  updated_at: at(0),
  ...fields,
});

export const sampleSubscription = (fields: Wire = {}): Wire => ({
  id: "subscription-1",
  customer_id: "customer-1",
  plan: { id: "plan-1", name: "Monthly", amount: 900, currency: "usd" },
  status: "active",
  billing_cycle: { interval: "month", interval_count: 1 },
  current_billing_cycle: 1,
  total_billing_cycles: 0,
  created_at: at(0),
  updated_at: at(0),
  ...fields,
});

export const sampleCustomer = (fields: Wire = {}): Wire => ({
  id: "customer-1",
  email: "jane@example.com",
  first_name: "Jane",
  created_at: at(0),
  updated_at: at(0),
  ...fields,
});

/** What an event shows. */
export const shown = (resource: Resource, object: Wire, createdAt = at(0)): Snapshot => ({
  resource,
  object,
  fallbackUpdatedAt: canonicalTimestamp(createdAt),
  observedAt: null,
  cause: "event:1",
});

/** What a read shows, dated by the service. */
export const seen = (resource: Resource, object: Wire, seconds: number): Snapshot => ({
  resource,
  object,
  fallbackUpdatedAt: null,
  observedAt: canonicalTimestamp(at(seconds)),
  cause: "fetch",
});

export const apply = (db: Knex, ...observations: Snapshot[]): Promise<ApplyResult> =>
  db.transaction((trx) => applySnapshots(trx, observations));

export async function rowOf(db: Knex, table: string, id: string, key = "id"): Promise<Wire> {
  const row = await db(`mirror.${table}`).where(key, id).first<Wire | undefined>();
  if (row === undefined) throw new Error(`no ${id} in ${table}`);
  return row;
}
