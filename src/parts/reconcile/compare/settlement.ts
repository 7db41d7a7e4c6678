import type { Knex } from "knex";
import { canonicalTimestamp } from "../../../core/contract/timestamp.ts";
import type { GroupState } from "../../../core/mirror/snapshot.ts";
import { sqlArray } from "../../../platform/postgres/values.ts";
import type { Classified } from "./classify.ts";
import { changeTimeFields } from "./differences.ts";

/*
 * SQL defines a settlement (reports/base/statuses.sql), since the delivery statement needs the same rule for the whole
 * mirror: `reports.last_changes` also uses `is_settling` and `is_settlement`.
 */

/**
 * The objects that are behind and differ only by a sale's settlement. `shown`: all states of the answer. One statement,
 * or none if no object qualifies.
 */
export async function settledAmong(
  db: Knex,
  classified: readonly Classified[],
  shown: readonly GroupState[],
): Promise<ReadonlySet<Classified>> {
  const sales = classified.flatMap(saleWithOtherStatus);
  const orders = classified.flatMap(orderWithOtherTime);
  if (sales.length + orders.length === 0) return new Set();
  const transactions = orders.length === 0 ? [] : shown.flatMap(shownTransaction);
  const { rows } = await db.raw<{ rows: { n: number }[] }>(
    `select s.n from unnest(?::int[], ?::text[], ?::text[]) as s(n, before, after)
     where reports.is_settled_since('sale', s.before, s.after)
     union all
     select o.n
     from unnest(?::int[], ?::text[], ?::timestamptz[]) as o(n, id, changed_at)
     join unnest(?::text[], ?::text[], ?::text[], ?::timestamptz[], ?::timestamptz[])
       as t(order_id, type, status, made_at, updated_at) on t.order_id = o.id
     group by o.n, o.changed_at
     -- The answer must show a sale that was settled with the order's change; else something else changed the order.
     having bool_or(reports.is_settling(t.type, t.status) and t.updated_at
              between o.changed_at - reports.same_moment() and o.changed_at + reports.same_moment())
       and reports.is_settlement(o.changed_at, max(coalesce(t.made_at, 'infinity')))`,
    [
      sqlArray(sales.map(({ n }) => n)),
      sqlArray(sales.map(({ before }) => before)),
      sqlArray(sales.map(({ after }) => after)),
      sqlArray(orders.map(({ n }) => n)),
      sqlArray(orders.map(({ id }) => id)),
      sqlArray(orders.map(({ changedAt }) => changedAt)),
      sqlArray(transactions.map(({ orderId }) => orderId)),
      sqlArray(transactions.map(({ type }) => type)),
      sqlArray(transactions.map(({ status }) => status)),
      sqlArray(transactions.map(({ madeAt }) => madeAt)),
      sqlArray(transactions.map(({ updatedAt }) => updatedAt)),
    ],
  );
  return new Set(rows.flatMap(({ n }) => classified[n] ?? []));
}

/** A sale in which nothing but the status, and with it the time, differs. */
function saleWithOtherStatus({ resource, object, classification }: Classified, n: number) {
  if (classification.kind !== "behind" || resource !== "transaction") return [];
  if (object.stored?.["type"] !== "sale") return [];
  const [status, ...others] = classification.differences.filter(({ field }) => !changeTimeFields.has(field));
  if (status?.field !== "status" || others.length > 0) return [];
  return [{ n, before: String(status.mirror), after: String(status.service) }];
}

/** An order in which nothing but its time differs. */
function orderWithOtherTime({ resource, id, object, classification }: Classified, n: number) {
  if (classification.kind !== "behind" || resource !== "order") return [];
  if (!classification.differences.every(({ field }) => changeTimeFields.has(field))) return [];
  // The fixed form of times sorts as text.
  const [changedAt = ""] = object.groups
    .map(({ state }) => state.updatedAt)
    .sort()
    .reverse();
  return [{ n, id, changedAt }];
}

function shownTransaction({ group, json, updatedAt }: GroupState) {
  if (!group.startsWith("transaction")) return [];
  const { order_id: orderId, type, status, created_at: made } = JSON.parse(json) as Readonly<Record<string, unknown>>;
  if (typeof orderId !== "string") return [];
  const madeAt = typeof made === "string" ? canonicalTimestamp(made) : null;
  return [{ orderId, type: String(type), status: String(status), madeAt, updatedAt }];
}
