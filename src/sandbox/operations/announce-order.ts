import type { OrderRecord } from "../records/order.ts";
import type { Space } from "../space.ts";

/**
 * Says how a charge went. `order.failed` tells four cases apart (statement 515): one-time (all null), first charge (cycle and
 * retry null), renewal in dunning (both set), renewal for the last time (retry null).
 */
export function announceOutcome(
  space: Space,
  order: OrderRecord,
  failure?: { attempt_count: number; next_retry_at: string | null },
): void {
  if (order.status === "succeeded") {
    space.emit("order.succeeded", { kind: "order", record: order });
    return;
  }
  const extra = failure ?? { attempt_count: null, next_retry_at: null };
  space.emit("order.failed", { kind: "order", record: order, extra });
}
