import type { AttemptKind, Delivery } from "./delivery-log.ts";

/** A delivery queue for each endpoint, so that one that answers slowly does not delay another. */
export interface DeliveryQueues {
  /** In all queues: waiting, held back, delayed or in progress. */
  readonly pending: number;
  push(endpointId: string, sending: Sending): void;
  /** Removes and returns an endpoint's waiting deliveries, except those held back or delayed. */
  takeReady(endpointId: string): Sending[];
  /** Resolves when nothing is pending. */
  quiet(): Promise<void>;
  close(): void;
}

export interface DeliveryQueuesDeps extends Pick<DeliveryQueueDeps, "send"> {
  concurrency: (endpointId: string) => number;
}

export function createDeliveryQueues({ send, concurrency }: DeliveryQueuesDeps): DeliveryQueues {
  const lanes = new Map<string, DeliveryQueue>();
  let waiters: (() => void)[] = [];

  function pending(): number {
    let sum = 0;
    for (const lane of lanes.values()) sum += lane.pending;
    return sum;
  }

  function onQuiet(): void {
    if (pending() > 0) return;
    const released = waiters;
    waiters = [];
    for (const resolve of released) resolve();
  }

  return {
    get pending() {
      return pending();
    },
    push(endpointId, sending) {
      let lane = lanes.get(endpointId);
      if (lane === undefined) {
        lane = createDeliveryQueue({ send, concurrency: () => concurrency(endpointId), onQuiet });
        lanes.set(endpointId, lane);
      }
      lane.push(sending);
    },
    takeReady: (endpointId) => lanes.get(endpointId)?.takeReady() ?? [],
    quiet: () =>
      pending() === 0
        ? Promise.resolve()
        : new Promise((resolve) => {
            waiters.push(resolve);
          }),
    close() {
      for (const lane of lanes.values()) lane.close();
      lanes.clear();
      onQuiet();
    },
  };
}

/** One attempt of a delivery, and its remaining delay. */
export interface Sending {
  delivery: Delivery;
  kind: AttemptKind;
  /** When it fell due, on the sandbox's clock. */
  dueMs: number;
  delayMs: number;
  reorder: { laterDeliveries: number; maxMs: number } | null;
}

/** The delivery queue of one endpoint: waiting and held-back deliveries, and a bounded number in progress. */
export interface DeliveryQueue {
  /** Waiting, held back, delayed or in progress. */
  readonly pending: number;
  push(sending: Sending): void;
  /** Removes and returns what only the bound on concurrency keeps from being sent now. */
  takeReady(): Sending[];
  close(): void;
}

export interface DeliveryQueueDeps {
  concurrency: () => number;
  /** Never rejects. */
  send: (sending: Sending) => Promise<void>;
  onQuiet: () => void;
}

interface Held {
  sending: Sending;
  /** Deliveries with a higher number are sent after it. */
  order: number;
  remaining: number;
  timer: NodeJS.Timeout;
}

/** The consumed front of the queue is cut off at this length. */
const spentLimit = 1024;

function createDeliveryQueue(deps: DeliveryQueueDeps): DeliveryQueue {
  let queue: Sending[] = [];
  let head = 0;
  let underWay = 0;
  let started = 0;
  let isWakeUpPlanned = false;
  let isClosed = false;
  const held = new Set<Held>();
  const delayed = new Set<NodeJS.Timeout>();

  const waiting = () => queue.length - head;
  const pending = () => waiting() + underWay + held.size + delayed.size;

  /** Sends on a later turn, so that a request is answered before its events are sent, and a burst starts together. */
  function wake(): void {
    if (isWakeUpPlanned || isClosed) return;
    isWakeUpPlanned = true;
    setImmediate(() => {
      isWakeUpPlanned = false;
      pump();
    });
  }

  function pump(): void {
    while (!isClosed && waiting() > 0 && underWay < deps.concurrency()) {
      const sending = queue[head] as Sending;
      head += 1;
      if (sending.delayMs > 0) delay(sending);
      else if (sending.reorder === null) void start(sending);
      else hold(sending, sending.reorder);
    }
    if (head >= spentLimit) {
      queue = queue.slice(head);
      head = 0;
    }
  }

  async function start(sending: Sending): Promise<void> {
    underWay += 1;
    started += 1;
    const order = started;
    await deps.send(sending);
    underWay -= 1;
    if (isClosed) return;
    countForHeld(order);
    pump();
    if (pending() === 0) deps.onQuiet();
  }

  function delay(sending: Sending): void {
    const timer = setTimeout(() => {
      delayed.delete(timer);
      queue.push({ ...sending, delayMs: 0 });
      wake();
    }, sending.delayMs);
    delayed.add(timer);
  }

  function hold(sending: Sending, { laterDeliveries, maxMs }: NonNullable<Sending["reorder"]>) {
    const entry: Held = {
      sending: { ...sending, reorder: null },
      order: started,
      remaining: laterDeliveries,
      timer: setTimeout(() => release(entry), maxMs),
    };
    held.add(entry);
  }

  function countForHeld(order: number): void {
    for (const entry of held) {
      if (entry.order >= order) continue;
      entry.remaining -= 1;
      if (entry.remaining <= 0) release(entry);
    }
  }

  function release(entry: Held): void {
    if (!held.delete(entry)) return;
    clearTimeout(entry.timer);
    if (head > 0) queue[--head] = entry.sending;
    else queue.unshift(entry.sending);
    wake();
  }

  return {
    get pending() {
      return pending();
    },
    push(sending) {
      queue.push(sending);
      wake();
    },
    takeReady() {
      const isReady = ({ delayMs, reorder }: Sending) => delayMs === 0 && reorder === null;
      const all = queue.slice(head);
      queue = all.filter((sending) => !isReady(sending));
      head = 0;
      return all.filter(isReady);
    },
    close() {
      isClosed = true;
      for (const timer of delayed) clearTimeout(timer);
      for (const entry of held) clearTimeout(entry.timer);
      queue = [];
      head = 0;
      held.clear();
      delayed.clear();
    },
  };
}
