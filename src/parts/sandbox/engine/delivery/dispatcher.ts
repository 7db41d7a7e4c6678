import { coversEvent } from "../../../../core/contract/resources/webhook-endpoints.ts";
import type { Random } from "../../../../platform/random.ts";
import type { WebhookEndpointRecord } from "../../resources/webhook-endpoints/webhook-endpoint.ts";
import type { SandboxClock } from "../clock.ts";
import type { EventRecord } from "../event-log.ts";
import { type FaultPlan, type Faults, drawFaults, faultNames, noFault } from "../faults.ts";
import type { Table } from "../store/table.ts";
import { type AttemptDeps, type PostResult, attempt, createAbsentHosts, isAccepted } from "./attempt.ts";
import {
  type AttemptKind,
  type Delivery,
  type DeliveryAttempt,
  type DeliveryCounts,
  type DeliveryLogDump,
  createDeliveryLog,
} from "./delivery-log.ts";
import { type Sending, createDeliveryQueues } from "./delivery-queues.ts";

/** Sends events to webhook endpoints: signed, retried by the schedule, damaged by the faults. */
export interface Dispatcher {
  /** Deliveries that are neither answered nor lost, and do not wait for a later retry. */
  readonly pending: number;
  readonly counts: Readonly<DeliveryCounts>;
  /** To every endpoint subscribed to the type. */
  publish(event: EventRecord): void;
  /** To one endpoint, regardless of its subscriptions and without faults. */
  publishTo(event: EventRecord, endpoint: WebhookEndpointRecord): void;
  /** Runs a retry that fell due. */
  retry(deliveryId: string): void;
  /** Sends a logged delivery once more, after any end. Undefined when the log lacks the id. */
  redeliver(deliveryId: string): Delivery | undefined;
  /** The latest deliveries, oldest first. */
  latest(): Delivery[];
  /** For a saved state: the unfinished deliveries, and the end of the log. */
  dump(): DeliveryLogDump;
  /** Restores a dump. `events` are those that the event log still holds. */
  restore(dump: DeliveryLogDump, events: readonly EventRecord[]): void;
  /** Resolves when nothing is pending. */
  quiet(): Promise<void>;
  close(): void;
}

export interface DispatcherDeps extends AttemptDeps {
  time: Pick<SandboxClock, "effectiveTimeOf" | "jumpOver" | "nowMs" | "schedule">;
  endpoints: (owner: Pick<EventRecord, "merchant" | "mode">) => Table<WebhookEndpointRecord>;
  faults: () => Faults;
  faultRandom: () => Random;
  newId: () => string;
}

/** How long after a corrupted copy the good one is sent (`retry: "soon"`). */
const soonMs = 100;

export function createDispatcher(deps: DispatcherDeps): Dispatcher {
  const log = createDeliveryLog();
  const { counts } = log;
  const waitingForRetry = new Map<string, Delivery>();
  /** Endpoints that were unreachable last time. One delivery at a time finds out whether they are reachable again. */
  const unreachable = new Set<string>();
  const unlessAbsent = createAbsentHosts();
  const lanes = createDeliveryQueues({
    send,
    concurrency: (id) => (unreachable.has(id) ? 1 : deps.settings().delivery_concurrency),
  });

  function push(delivery: Delivery, how: Partial<Omit<Sending, "delivery">> = {}): void {
    lanes.push(delivery.endpointId, {
      delivery,
      kind: "normal",
      dueMs: deps.time.nowMs(),
      delayMs: 0,
      reorder: null,
      ...how,
    });
  }

  function dispatch(event: EventRecord, endpoint: WebhookEndpointRecord, plan: FaultPlan): void {
    const delivery: Delivery = {
      id: deps.newId(),
      event,
      endpointId: endpoint.id,
      faults: faultNames(plan),
      status: plan.drop ? "lost" : "pending",
      attempts: [],
      failures: 0,
      nextAttemptAt: null,
    };
    log.append(delivery);
    if (plan.drop) {
      counts.lost += 1;
      return;
    }
    const { delayMs, reorder } = plan;
    push(delivery, { kind: plan.corrupt ? "corrupt" : "normal", delayMs, reorder });
    if (plan.duplicate) {
      counts.duplicated += 1;
      push(delivery, { kind: "duplicate" });
    }
  }

  async function send(sending: Sending): Promise<void> {
    const { delivery, kind, dueMs } = sending;
    const endpoint = endpointOf(delivery);
    if (endpoint === undefined) return cancel(delivery);
    const at = new Date(deps.time.effectiveTimeOf(dueMs)).toISOString();
    const result = await unlessAbsent(endpoint.url, deps.time.jumpOver(dueMs), () =>
      attempt(deps, delivery.event, endpoint, { at, kind }),
    );
    recordAttempt(sending, at, result);
    if (!result.unreachable) unreachable.delete(endpoint.id);
    else if (endpointOf(delivery)?.url === endpoint.url) failWaiting(endpoint.id, result);
  }

  /** Undefined when the endpoint was removed or disabled. */
  function endpointOf({ event, endpointId }: Delivery): WebhookEndpointRecord | undefined {
    const endpoint = deps.endpoints(event).get(endpointId);
    return endpoint?.status === "enabled" ? endpoint : undefined;
  }

  function cancel(delivery: Delivery): void {
    if (delivery.status === "pending") delivery.status = "canceled";
  }

  function recordAttempt({ delivery, kind }: Sending, at: string, { status, error }: PostResult): void {
    counts.sent += 1;
    if (kind === "corrupt") counts.corrupted += 1;
    const made: DeliveryAttempt = { at, status, error, kind };
    delivery.attempts.push(made);
    if (isAccepted(made)) accept(delivery);
    else refuse(delivery, made);
  }

  /**
   * Fails the deliveries that waited while their endpoint was unreachable. A jump over months has thousands of retries
   * to an endpoint that is gone; a connection attempt for each would take minutes.
   */
  function failWaiting(endpointId: string, result: PostResult): void {
    unreachable.add(endpointId);
    for (const sending of lanes.takeReady(endpointId)) {
      recordAttempt(sending, new Date(deps.time.effectiveTimeOf(sending.dueMs)).toISOString(), result);
    }
  }

  function accept(delivery: Delivery): void {
    counts.accepted += 1;
    delivery.status = "succeeded";
    delivery.nextAttemptAt = null;
    waitingForRetry.delete(delivery.id);
  }

  function refuse(delivery: Delivery, { at, kind }: DeliveryAttempt): void {
    counts.refused += 1;
    const next = afterRefusal(delivery, kind, {
      corrupt: deps.faults().delivery.corrupt.retry,
      retrySeconds: deps.settings().delivery_retry_seconds,
    });
    switch (next.step) {
      case "nothing":
        return;
      case "soon":
        push(delivery, { delayMs: soonMs });
        return;
      case "later":
        delivery.failures += 1;
        awaitRetry(delivery, deps.time.effectiveTimeOf(Date.parse(at)) + next.waitSeconds * 1000);
        return;
      case "lost":
      case "failed":
        delivery.status = next.step;
        counts[next.step] += 1;
    }
  }

  function awaitRetry(delivery: Delivery, atMs: number): void {
    const { id, event } = delivery;
    delivery.nextAttemptAt = new Date(atMs).toISOString();
    waitingForRetry.set(id, delivery);
    deps.time.schedule({ kind: "delivery", merchant: event.merchant, mode: event.mode, id, atMs });
  }

  /** Sends a retry that was due at `dueMs`, or a redelivery. */
  function sendAgain(delivery: Delivery, dueMs: number): void {
    waitingForRetry.delete(delivery.id);
    delivery.nextAttemptAt = null;
    push(delivery, { dueMs });
  }

  return {
    get pending() {
      return lanes.pending;
    },
    counts,
    publish(event) {
      for (const endpoint of deps.endpoints(event).all()) {
        if (endpoint.status !== "enabled") continue;
        if (!coversEvent(endpoint.enabled_events, event.type)) continue;
        dispatch(event, endpoint, drawFaults(deps.faultRandom(), deps.faults()));
      }
    },
    publishTo: (event, endpoint) => dispatch(event, endpoint, noFault),
    retry(deliveryId) {
      const delivery = waitingForRetry.get(deliveryId);
      if (delivery?.nextAttemptAt == null) return;
      sendAgain(delivery, Date.parse(delivery.nextAttemptAt));
    },
    redeliver(deliveryId) {
      const delivery = log.find(deliveryId);
      if (delivery === undefined) return undefined;
      delivery.status = "pending";
      sendAgain(delivery, deps.time.nowMs());
      return delivery;
    },
    latest: log.latest,
    dump: log.dump,
    restore(dump, events) {
      for (const delivery of log.restore(dump, events)) {
        if (delivery.status !== "pending") continue;
        if (delivery.nextAttemptAt === null) push(delivery);
        else awaitRetry(delivery, Date.parse(delivery.nextAttemptAt));
      }
    },
    quiet: lanes.quiet,
    close() {
      waitingForRetry.clear();
      lanes.close();
    },
  };
}

/** The next step after an attempt that was not accepted. */
export type AfterRefusal =
  | { step: "nothing" }
  /** A good copy follows the corrupted one soon. */
  | { step: "soon" }
  | { step: "lost" }
  | { step: "failed" }
  | { step: "later"; waitSeconds: number };

/**
 * A duplicate is not retried. A corrupted copy follows the rule of its fault. Anything else follows the retry schedule.
 */
function afterRefusal(
  { status, failures }: Pick<Delivery, "status" | "failures">,
  kind: AttemptKind,
  rules: { corrupt: "soon" | "schedule" | "never"; retrySeconds: readonly number[] },
): AfterRefusal {
  if (kind === "duplicate" || status !== "pending") return { step: "nothing" };
  if (kind === "corrupt" && rules.corrupt === "soon") return { step: "soon" };
  if (kind === "corrupt" && rules.corrupt === "never") return { step: "lost" };
  const waitSeconds = rules.retrySeconds[failures];
  return waitSeconds === undefined ? { step: "failed" } : { step: "later", waitSeconds };
}
