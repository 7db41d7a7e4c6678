import type { EventRecord } from "../events.ts";
import type { FaultPlan } from "./fault-plan.ts";

/** `lost`: dropped by a fault, for good. `canceled`: its endpoint was removed or disabled. `failed`: after the last attempt. */
export type DeliveryStatus = "pending" | "succeeded" | "failed" | "lost" | "canceled";

export interface DeliveryAttempt {
  /** The sandbox's time. */
  at: string;
  /** HTTP status; null when there was no answer. */
  status: number | null;
  error: string | null;
  kind: AttemptKind;
}

export type AttemptKind = "normal" | "duplicate" | "corrupt";

/** One event on its way to one endpoint. It changes while it is under way. */
export interface Delivery {
  readonly id: string;
  readonly event: EventRecord;
  readonly endpointId: string;
  readonly faults: readonly (keyof FaultPlan)[];
  status: DeliveryStatus;
  attempts: DeliveryAttempt[];
  /** Failed attempts that count for the retry schedule. */
  failures: number;
  nextAttemptAt: string | null;
}

/** A delivery as the delivery log shows it. */
export function deliveryBody(delivery: Delivery): Record<string, unknown> {
  return {
    id: delivery.id,
    event_id: delivery.event.id,
    event_type: delivery.event.type,
    endpoint_id: delivery.endpointId,
    mode: delivery.event.mode,
    status: delivery.status,
    error_code: delivery.status === "failed" ? "webhook_delivery_failed" : null,
    faults: delivery.faults,
    attempts: delivery.attempts,
    next_attempt_at: delivery.nextAttemptAt,
    created_at: delivery.event.created_at,
  };
}
