import type { Clock } from "../../platform/clock.ts";
import type { Random } from "../../platform/random.ts";
import { signatureScheme } from "../../service/signature/signature-scheme.ts";
import type { EventRecord } from "../events.ts";
import { dumpedLogEntries } from "../events.ts";
import type { WebhookEndpointRecord } from "../records.ts";
import { matchesPatterns } from "../rules/event-patterns.ts";
import type { Faults } from "../faults.ts";
import type { Settings } from "../settings.ts";
import { createRing } from "../store/ring.ts";
import type { Table } from "../store/table.ts";
import type { Timeline } from "../timeline.ts";
import { eventBody } from "../wire/event.ts";
import { liveSecrets } from "../wire/webhook-endpoint.ts";
import type { AttemptKind, Delivery } from "./delivery.ts";
import type { FaultPlan } from "./fault-plan.ts";
import { drawFaults, noFault } from "./fault-plan.ts";
import type { Lane, Sending } from "./lane.ts";
import { createLane } from "./lane.ts";
import type { Transport } from "./transport.ts";

/** Pushes events to webhook endpoints: signed, retried by the schedule, spoiled by the faults. */
export interface Dispatcher {
  /** Not yet answered, lost or waiting for a later retry. */
  readonly pending: number;
  readonly counts: Readonly<DeliveryCounts>;
  /** To every endpoint that asked for the type. */
  publish(event: EventRecord): void;
  /** To one endpoint whatever it asked for, untouched by faults. */
  publishTo(event: EventRecord, endpoint: WebhookEndpointRecord): void;
  /** A retry fell due. */
  retry(deliveryId: string): void;
  /** Sends a delivery of the log once more, however it ended. Undefined when the log has none of that id. */
  redeliver(deliveryId: string): Delivery | undefined;
  /** The latest deliveries, oldest first. */
  latest(): Delivery[];
  /** For a state that is written down: what is still to be delivered, and the end of the log. */
  dump(): DispatcherDump;
  /** Goes on where `dump` was made; `events` are those that the log still has. */
  restore(dump: DispatcherDump, events: readonly EventRecord[]): void;
  /** Resolves when nothing is pending. */
  quiet(): Promise<void>;
  close(): void;
}

export interface DeliveryCounts {
  created: number;
  sent: number;
  accepted: number;
  refused: number;
  duplicated: number;
  corrupted: number;
  lost: number;
  failed: number;
}

export interface DispatcherDump {
  counts: DeliveryCounts;
  latest: DumpedDelivery[];
}

/** An event that the log no longer holds travels with its delivery. */
type DumpedDelivery = Omit<Delivery, "event"> & { event_id: string; event: EventRecord };

export interface DispatcherDeps {
  wallClock: Clock;
  time: Pick<Timeline, "iso" | "nowMs" | "schedule">;
  transport: Transport;
  endpoints: (owner: Pick<EventRecord, "merchant" | "mode">) => Table<WebhookEndpointRecord>;
  settings: () => Settings;
  faults: () => Faults;
  faultRandom: () => Random;
  newId: () => string;
}

const keptDeliveries = 50_000;
/** How long after a corrupted copy the good one follows (`retry: "soon"`). */
const soonMs = 100;

export function createDispatcher(deps: DispatcherDeps): Dispatcher {
  const lanes = new Map<string, Lane>();
  const waitingForRetry = new Map<string, Delivery>();
  const log = createRing<Delivery>(keptDeliveries);
  const counts: DeliveryCounts = {
    created: 0,
    sent: 0,
    accepted: 0,
    refused: 0,
    duplicated: 0,
    corrupted: 0,
    lost: 0,
    failed: 0,
  };
  let quietWaiters: (() => void)[] = [];

  function pending(): number {
    let sum = 0;
    for (const lane of lanes.values()) sum += lane.pending;
    return sum;
  }

  function onQuiet(): void {
    if (pending() > 0) return;
    const waiters = quietWaiters;
    quietWaiters = [];
    for (const resolve of waiters) resolve();
  }

  function laneOf(endpointId: string): Lane {
    let lane = lanes.get(endpointId);
    if (lane === undefined) {
      const concurrency = () => deps.settings().delivery_concurrency;
      lane = createLane({ concurrency, send, onQuiet });
      lanes.set(endpointId, lane);
    }
    return lane;
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
    log.push(delivery);
    counts.created += 1;
    if (plan.drop) {
      counts.lost += 1;
      return;
    }
    const { delayMs, reorder } = plan;
    const lane = laneOf(endpoint.id);
    lane.push({ delivery, kind: plan.corrupt ? "corrupt" : "normal", delayMs, reorder });
    if (plan.duplicate) {
      counts.duplicated += 1;
      lane.push({ delivery, kind: "duplicate", delayMs: 0, reorder: null });
    }
  }

  async function send({ delivery, kind }: Sending): Promise<void> {
    const endpoint = deps.endpoints(delivery.event).get(delivery.endpointId);
    if (endpoint?.status !== "enabled") {
      if (delivery.status === "pending") delivery.status = "canceled";
      return;
    }
    const body = Buffer.from(JSON.stringify(eventBody(delivery.event, endpoint.api_version)));
    const scheme = signatureScheme(deps.settings().signature_scheme);
    const signature = scheme.sign({
      body,
      secrets: liveSecrets(endpoint, deps.time.iso()),
      // Wall time: a receiver would refuse the time of a clock that was moved.
      at: deps.wallClock.now(),
      messageId: delivery.event.id,
    });
    counts.sent += 1;
    if (kind === "corrupt") counts.corrupted += 1;
    const result = await deps.transport.post(
      endpoint.url,
      { "content-type": "application/json", "user-agent": "svc-webhooks/1", ...signature },
      kind === "corrupt" ? corrupted(body) : body,
    );
    delivery.attempts.push({ at: deps.time.iso(), ...result, kind });
    const isAccepted = result.status !== null && result.status >= 200 && result.status < 300;
    if (isAccepted) accept(delivery);
    else refuse(delivery, kind);
  }

  function accept(delivery: Delivery): void {
    counts.accepted += 1;
    delivery.status = "succeeded";
    delivery.nextAttemptAt = null;
    waitingForRetry.delete(delivery.id);
  }

  function refuse(delivery: Delivery, kind: AttemptKind): void {
    counts.refused += 1;
    if (kind === "duplicate" || delivery.status !== "pending") return;
    const { retry } = deps.faults().delivery.corrupt;
    if (kind === "corrupt" && retry === "soon") {
      laneOf(delivery.endpointId).push({
        delivery,
        kind: "normal",
        delayMs: soonMs,
        reorder: null,
      });
      return;
    }
    if (kind === "corrupt" && retry === "never") {
      delivery.status = "lost";
      counts.lost += 1;
      return;
    }
    scheduleRetry(delivery);
  }

  function scheduleRetry(delivery: Delivery): void {
    const waitSeconds = deps.settings().delivery_retry_seconds[delivery.failures];
    delivery.failures += 1;
    if (waitSeconds === undefined) {
      delivery.status = "failed";
      delivery.nextAttemptAt = null;
      counts.failed += 1;
      return;
    }
    const atMs = deps.time.nowMs() + waitSeconds * 1000;
    delivery.nextAttemptAt = new Date(atMs).toISOString();
    waitingForRetry.set(delivery.id, delivery);
    const { merchant, mode } = delivery.event;
    deps.time.schedule({ kind: "delivery", merchant, mode, id: delivery.id, atMs });
  }

  /** What was on its way is sent again; what waited for a retry waits on. */
  function takeUp(delivery: Delivery): void {
    if (delivery.status !== "pending") return;
    const { id, event, nextAttemptAt } = delivery;
    if (nextAttemptAt === null) {
      laneOf(delivery.endpointId).push({ delivery, kind: "normal", delayMs: 0, reorder: null });
      return;
    }
    waitingForRetry.set(id, delivery);
    const { merchant, mode } = event;
    deps.time.schedule({ kind: "delivery", merchant, mode, id, atMs: Date.parse(nextAttemptAt) });
  }

  return {
    get pending() {
      return pending();
    },
    counts,
    publish(event) {
      for (const endpoint of deps.endpoints(event).all()) {
        if (endpoint.status !== "enabled") continue;
        if (!matchesPatterns(endpoint.enabled_events, event.type)) continue;
        dispatch(event, endpoint, drawFaults(deps.faultRandom(), deps.faults()));
      }
    },
    publishTo: (event, endpoint) => dispatch(event, endpoint, noFault),
    retry(deliveryId) {
      const delivery = waitingForRetry.get(deliveryId);
      if (delivery === undefined) return;
      waitingForRetry.delete(deliveryId);
      delivery.nextAttemptAt = null;
      laneOf(delivery.endpointId).push({ delivery, kind: "normal", delayMs: 0, reorder: null });
    },
    redeliver(deliveryId) {
      const delivery = log.toArray().find(({ id }) => id === deliveryId);
      if (delivery === undefined) return undefined;
      waitingForRetry.delete(deliveryId);
      delivery.status = "pending";
      delivery.nextAttemptAt = null;
      laneOf(delivery.endpointId).push({ delivery, kind: "normal", delayMs: 0, reorder: null });
      return delivery;
    },
    latest: () => log.toArray(),
    dump() {
      const all = log.toArray();
      const later = all.slice(-dumpedLogEntries);
      const open = all.slice(0, -dumpedLogEntries).filter(({ status }) => status === "pending");
      const latest = [...open, ...later].map((delivery) => ({
        ...delivery,
        attempts: [...delivery.attempts],
        event_id: delivery.event.id,
      }));
      return { counts: { ...counts }, latest };
    },
    restore(dump, events) {
      const known = new Map(events.map((event) => [event.id, event]));
      Object.assign(counts, dump.counts);
      const deliveries = dump.latest.map(({ event_id, ...delivery }): Delivery => ({
        ...delivery,
        event: known.get(event_id) ?? delivery.event,
      }));
      log.restore(deliveries, counts.created);
      for (const delivery of deliveries) takeUp(delivery);
    },
    quiet: () =>
      pending() === 0
        ? Promise.resolve()
        : new Promise((resolve) => {
            quietWaiters.push(resolve);
          }),
    close() {
      for (const lane of lanes.values()) lane.close();
      lanes.clear();
      waitingForRetry.clear();
      onQuiet();
    },
  };
}

function faultNames(plan: FaultPlan): Delivery["faults"] {
  const names: (keyof FaultPlan)[] = [];
  if (plan.drop) names.push("drop");
  if (plan.duplicate) names.push("duplicate");
  if (plan.corrupt) names.push("corrupt");
  if (plan.delayMs > 0) names.push("delayMs");
  if (plan.reorder !== null) names.push("reorder");
  return names;
}

/** The same bytes but for one bit in the middle: the signature no longer fits. */
function corrupted(body: Buffer): Buffer {
  const copy = Buffer.from(body);
  const middle = copy.length >>> 1;
  copy[middle] = (copy[middle] ?? 0) ^ 1;
  return copy;
}
