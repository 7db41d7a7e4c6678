import type { DifferentObject } from "../mirror/compare-rows.ts";
import type { GroupState } from "../mirror/observation.ts";
import { bookkeeping } from "./differences.ts";
import type { Difference } from "./findings.ts";

/*
 * Live, a sale is confirmed one to three business days after it was paid: its status moves on, and so may its order's
 * `updated_at`. No event is documented for that, so it can only be learned by reading: it is neither drift nor a webhook
 * that was missed. `reports.last_changes` holds the same view of orders for the delivery statement.
 */

/** When each transaction of an order was made and last changed, by the answer that shows the order. */
export type ShownTransactions = ReadonlyMap<string, readonly ShownTransaction[]>;

interface ShownTransaction {
  isSettledSale: boolean;
  createdMs: number;
  updatedMs: number;
}

/** An order and its sale change together, but not in the same instant. */
const togetherMs = 2_000;

const nextStatuses: Readonly<Record<string, readonly string[]>> = {
  pending: ["in_progress", "succeeded"],
  in_progress: ["succeeded"],
};

/** Statuses of a sale that was confirmed, or is on the way to it. */
const settling = new Set(["in_progress", "succeeded"]);

/** Reads the transactions out of an answer's states, by order. Pure. */
export function shownTransactions(states: readonly GroupState[]): ShownTransactions {
  const shown = new Map<string, ShownTransaction[]>();
  for (const { group, json, updatedAt } of states) {
    if (!group.startsWith("transaction")) continue;
    const { order_id, type, status, created_at } = JSON.parse(json) as Record<string, unknown>;
    if (typeof order_id !== "string") continue;
    const transaction = {
      isSettledSale: type === "sale" && settling.has(String(status)),
      createdMs: Date.parse(String(created_at)),
      updatedMs: Date.parse(updatedAt),
    };
    const known = shown.get(order_id);
    if (known === undefined) shown.set(order_id, [transaction]);
    else known.push(transaction);
  }
  return shown;
}

/** Whether what the service shows differs from the mirror by nothing but a sale's settlement. Pure. */
export function isSettlement(
  object: DifferentObject,
  differences: readonly Difference[],
  shown: () => ShownTransactions,
): boolean {
  if (object.table === "transactions") return isSettledSale(object, differences);
  if (object.table !== "orders") return false;
  if (!differences.every(({ field }) => bookkeeping.has(field))) return false;
  const changedMs = Math.max(...object.groups.map(({ state }) => Date.parse(state.updatedAt)));
  return isExplained(changedMs, shown().get(object.id) ?? []);
}

function isSettledSale({ stored }: DifferentObject, differences: readonly Difference[]): boolean {
  const status = differences.find(({ field }) => field === "status");
  if (status === undefined || stored?.["type"] !== "sale") return false;
  const isForward = nextStatuses[String(status.mirror)]?.includes(String(status.service)) === true;
  return (
    isForward && differences.every(({ field }) => field === "status" || bookkeeping.has(field))
  );
}

/** An order changed when its sale settled, and not when a charge or a refund was made. */
const isExplained = (changedMs: number, transactions: readonly ShownTransaction[]): boolean =>
  transactions.some(
    ({ isSettledSale: is, updatedMs }) => is && Math.abs(updatedMs - changedMs) <= togetherMs,
  ) && transactions.every(({ createdMs }) => changedMs - createdMs > togetherMs);
