import type Router from "@koa/router";
import { z } from "zod";
import { invalidValue, notFound } from "../engine/api-error.ts";
import type { Space } from "../engine/space.ts";
import type { StoredRecord, Table } from "../engine/store/table.ts";
import { moveContacts } from "../resources/customers/customer-operations.ts";
import type { CustomerRecord } from "../resources/customers/customer.ts";
import { scheduleBilling } from "../resources/subscriptions/bill-subscription.ts";
import { type SubscriptionRecord, planSummary } from "../resources/subscriptions/subscription.ts";
import { type ControlDeps, addControl, nothing, place, spaceAt } from "./control.ts";

export const silentResources = ["orders", "transactions", "subscriptions", "customers"] as const;

export type SilentResource = (typeof silentResources)[number];

interface Changeable extends StoredRecord {
  readonly updated_at: string;
}

/** Fields that identify a record, or depend on other records. */
const fixedFields = new Set([
  "id",
  "customer_id",
  "order_id",
  "created_at",
  "updated_at",
  "transactions",
  "items",
  "cycles",
  "schedule",
  "dunning",
  "plan",
  "payment_method",
  "billing_cycle",
]);

/** Fields that an object cannot do without. */
const neverNull = new Set([
  "amount",
  "attempt_count",
  "currency",
  "current_billing_cycle",
  "deleted",
  "discount_amount",
  "email",
  "metadata",
  "order_number",
  "plan_id",
  "processor_transaction_id",
  "start_date",
  "status",
  "subtotal",
  "total",
  "total_billing_cycles",
  "type",
]);

/**
 * Changes an object without an event: `updated_at` moves, nothing is sent. Takes only fields that the object has, with
 * values of their type or null. A change of a transaction also shows in its order; `plan_id` names a plan of the
 * sandbox, which a subscription is billed by from its next cycle on.
 */
function changeSilently(
  space: Space,
  change: { resource: SilentResource; id: string; set: Readonly<Record<string, unknown>> },
): Changeable {
  // One of several tables, of which only the common fields are used here.
  const table = space[change.resource] as unknown as Table<Changeable>;
  const record = table.get(change.id);
  if (record === undefined) throw notFound(change.resource.slice(0, -1), "id");
  assertFitting(record, change.set);
  const changed = {
    ...record,
    ...change.set,
    ...planShown(space, change.set),
    updated_at: space.touch(record.updated_at),
  };
  table.replace(changed);
  if (change.resource === "transactions") showInOrder(space, change.id);
  if (change.resource === "subscriptions") plan(space, change.id);
  if (change.resource === "customers") {
    const customer = space.customers.get(change.id);
    if (customer !== undefined) moveContacts(space, record as CustomerRecord, customer);
  }
  return changed;
}

/** A subscription's fields from the plan that it is moved to. */
function planShown(
  space: Space,
  { plan_id }: Readonly<Record<string, unknown>>,
): Partial<Pick<SubscriptionRecord, "plan">> {
  if (typeof plan_id !== "string") return {};
  const plan = space.plans.get(plan_id);
  if (plan === undefined) throw notFound("plan", "set.plan_id");
  return { plan: planSummary(plan) };
}

/** Plans the billing of a subscription that became active, or due earlier. */
function plan(space: Space, id: string): void {
  const subscription = space.subscriptions.get(id);
  if (subscription !== undefined) scheduleBilling(space, subscription);
}

function showInOrder(space: Space, transactionId: string): void {
  const transaction = space.transactions.get(transactionId);
  const order = transaction?.order_id == null ? undefined : space.orders.get(transaction.order_id);
  if (transaction === undefined || order === undefined) return;
  space.orders.replace({
    ...order,
    transactions: order.transactions.map((known) => (known.id === transactionId ? transaction : known)),
    updated_at: space.touch(order.updated_at),
  });
}

function assertFitting(record: Changeable, set: Readonly<Record<string, unknown>>): void {
  const current = new Map<string, unknown>(Object.entries(record));
  for (const [field, value] of Object.entries(set)) {
    if (fixedFields.has(field) || !current.has(field)) {
      throw invalidValue(`set.${field}`, "cannot be set");
    }
    const before = current.get(field);
    if (value === null && neverNull.has(field)) throw invalidValue(`set.${field}`, "cannot be null");
    if (before !== null && value !== null && typeof before !== typeof value) {
      throw invalidValue(`set.${field}`, `must be a ${typeof before}`);
    }
  }
}

const change = z.strictObject({
  resource: z.enum(silentResources),
  id: z.string(),
  set: z.record(z.string(), z.unknown()),
  ...place,
});

/** `POST /_sandbox/silent`: a change without an event. */
export function addSilent(router: Router, { state }: ControlDeps): void {
  addControl(router, {
    method: "POST",
    path: "/silent",
    query: nothing,
    body: change,
    run({ body }) {
      const { id, updated_at } = changeSilently(spaceAt(state(), body), body);
      return { resource: body.resource, id, updated_at };
    },
  });
}
