import { billIfDue, completeIfOver, retryIfDue } from "../operations/bill-subscription.ts";
import { openChargeback } from "../operations/chargebacks.ts";
import { settleIfDue } from "../operations/settle-sale.ts";
import type { Space } from "../space.ts";
import type { Job } from "../timeline.ts";

/** Does a job that fell due. It looks at the state as it is now: a job that no longer applies does nothing. */
export function runJob(space: Space, kind: Exclude<Job["kind"], "delivery">, id: string): void {
  switch (kind) {
    case "billing":
      return billIfDue(space, id);
    case "dunning":
      return retryIfDue(space, id);
    case "completion":
      return completeIfOver(space, id);
    case "settlement":
      settleIfDue(space, id);
      return;
    case "chargeback":
      return chargeBackIfCaptured(space, id);
  }
}

/** The chargeback of the test card that announces one (spec, Sandbox, 4000000000000259). */
function chargeBackIfCaptured(space: Space, orderId: string): void {
  const order = space.orders.get(orderId);
  if (order?.status === "succeeded" || order?.status === "partially_refunded") {
    openChargeback(space, order);
  }
}
