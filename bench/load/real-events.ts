import { createHash } from "node:crypto";
import type { EventStream, SampleEvent } from "./protocol.ts";
import { customer, numberOfId, objectId, order, saleOf, subscription } from "./sample-objects.ts";

/*
 * The realistic mix. Of 100 deliveries, 10 are repeats, 20 bring an older state after a newer one, 8 are declines of
 * renewals with their dunning fields, 4 make two ties, 2 lack required fields, and the others are orders, renewals,
 * refunds, chargebacks and customers. Every object has a story, a few states in the order in which they happened. The
 * script below has their order and delay of delivery.
 */

/** The cycle of deliveries. Each number in it has the same part in every cycle. */
const cycleLength = 100;
/** Every tenth delivery repeats an earlier one. */
const isRepeat = (n: number): boolean => modulo(n, 10) === 9;
/** Half of the repeats come immediately, the others at any later time. */
const isLateRepeat = (n: number): boolean => modulo(n, 20) === 19;

type Wire = Record<string, unknown>;

/** An object of a stream. Its number is that of the first delivery of its story. */
interface Subject {
  seed: string;
  number: number;
  /** The time of a state, counted from the object's creation. */
  at: (seconds: number) => string;
}

interface State {
  type: string;
  show: (of: Subject) => Wire;
}

interface Story {
  /** The resource's path at the service. */
  path: "orders" | "subscriptions" | "customers";
  states: readonly State[];
  /** The object at the service. Left out: the last state. */
  now?: (of: Subject) => Wire;
}

const orderAt = ({ seed, number, at }: Subject, seconds: number, status: string, more: Wire = {}) => ({
  ...order(seed, { number, createdAt: at(0), updatedAt: at(seconds), status, transactions: [] }),
  ...more,
});

const sold = (of: Subject, seconds: number, status: string, more: Wire = {}): Wire =>
  orderAt(of, seconds, status, { transactions: [saleOf(of.seed, of.number, of.at(1))], ...more });

const purchase: Story = {
  path: "orders",
  states: [
    { type: "order.created", show: (of) => orderAt(of, 0, "pending") },
    { type: "order.succeeded", show: (of) => sold(of, 1, "succeeded") },
  ],
};

/** Two contents with one `updated_at`: only a read shows which is the last. */
const tie: Story = {
  path: "orders",
  states: [
    { type: "order.succeeded", show: (of) => sold(of, 1, "succeeded") },
    { type: "order.succeeded", show: (of) => sold(of, 1, "succeeded", { description: "Gift" }) },
  ],
};

/** An order without its amounts: it has to be read. */
const thin: Story = {
  path: "orders",
  states: [
    {
      type: "order.succeeded",
      show: (of) => {
        const { id, status, created_at, updated_at } = sold(of, 1, "succeeded");
        return { id, status, created_at, updated_at };
      },
    },
  ],
  now: (of) => sold(of, 1, "succeeded"),
};

const refundOf = ({ seed, number, at }: Subject, part: number, amount: number) => ({
  ...saleOf(seed, number, at(1 + part)),
  id: objectId(seed, `refund${part}`, number),
  type: "refund",
  amount,
});

const refund: Story = {
  path: "orders",
  states: [
    purchase.states[1]!,
    {
      type: "order.refunded",
      show: (of) =>
        sold(of, 2, "partially_refunded", {
          transactions: [saleOf(of.seed, of.number, of.at(1)), refundOf(of, 1, 1_000)],
        }),
    },
    {
      type: "order.refunded",
      show: (of) =>
        sold(of, 3, "refunded", {
          transactions: [saleOf(of.seed, of.number, of.at(1)), refundOf(of, 1, 1_000), refundOf(of, 2, 3_750)],
        }),
    },
  ],
};

const disputed = (of: Subject, seconds: number, status: string): Wire => {
  const sale = {
    ...saleOf(of.seed, of.number, of.at(1)),
    status: "chargeback",
    updated_at: of.at(2),
  };
  return sold(of, seconds, status, { transactions: [sale] });
};

const chargeback: Story = {
  path: "orders",
  states: [
    purchase.states[1]!,
    { type: "order.chargeback", show: (of) => disputed(of, 2, "chargeback") },
    { type: "order.chargeback", show: (of) => disputed(of, 3, "chargeback_accepted") },
  ],
};

const daySeconds = 24 * 3_600;

/** The order of a renewal. It belongs to a subscription that renewed in the cycle before. */
const renewalOrder = (of: Subject): Wire => ({
  subscription_id: objectId(of.seed, "subscription", renewedBefore(of.number)),
  subscription_cycle: 4,
});

const declined = (of: Subject, attempt: number): Wire =>
  orderAt(of, attempt, "failed", {
    ...renewalOrder(of),
    failure_code: "insufficient_funds",
    failure_reason: "Insufficient funds",
    attempt_count: attempt,
    next_retry_at: of.at(attempt * 3 * daySeconds),
  });

const dunning: Story = {
  path: "orders",
  states: [
    { type: "order.failed", show: (of) => declined(of, 1) },
    { type: "order.failed", show: (of) => declined(of, 2) },
    { type: "order.succeeded", show: (of) => sold(of, 3, "succeeded", renewalOrder(of)) },
  ],
};

const renewed = ({ seed, number, at }: Subject, cycle: number): Wire =>
  subscription(seed, { number, createdAt: at(-90 * daySeconds), updatedAt: at(cycle), cycle });

const renewal: Story = {
  path: "subscriptions",
  states: [
    { type: "subscription.charged", show: (of) => renewed(of, 4) },
    { type: "subscription.charged", show: (of) => renewed(of, 5) },
  ],
};

const newcomer: Story = {
  path: "customers",
  states: [
    {
      type: "customer.created",
      show: ({ seed, number, at }) => customer(seed, { number, createdAt: at(0), updatedAt: at(0) }),
    },
    {
      type: "customer.updated",
      show: ({ seed, number, at }) => ({
        ...customer(seed, { number, createdAt: at(0), updatedAt: at(1) }),
        company: "Harbour Coffee",
      }),
    },
  ],
};

/** The delivery of one state of a story, so many cycles after the first one. */
type Delivery = readonly [state: number, cyclesLater: number];

/** Far enough that both deliveries are rarely in one batch. */
const later = 24;

/** The stories that each cycle begins, and how often. The deliveries add up to 90. */
const script: readonly { times: number; story: Story; deliveries: readonly Delivery[] }[] = [
  {
    times: 10,
    story: purchase,
    deliveries: [
      [0, 0],
      [1, later],
    ],
  },
  { times: 4, story: renewal, deliveries: [[0, 0]] },
  { times: 5, story: newcomer, deliveries: [[0, 0]] },
  {
    times: 2,
    story: refund,
    deliveries: [
      [0, 0],
      [1, later],
      [2, 2 * later],
    ],
  },
  {
    times: 1,
    story: chargeback,
    deliveries: [
      [0, 0],
      [1, later],
      [2, 2 * later],
    ],
  },
  {
    times: 2,
    story: dunning,
    deliveries: [
      [0, 0],
      [1, later],
      [2, 2 * later],
    ],
  },
  {
    times: 1,
    story: tie,
    deliveries: [
      [0, 0],
      [1, 0],
    ],
  },
  {
    times: 1,
    story: tie,
    deliveries: [
      [0, 0],
      [1, later],
    ],
  },
  { times: 2, story: thin, deliveries: [[0, 0]] },
  // An older state after a newer one, 20 times.
  {
    times: 6,
    story: purchase,
    deliveries: [
      [1, 0],
      [0, 0],
    ],
  },
  {
    times: 6,
    story: purchase,
    deliveries: [
      [1, 0],
      [0, later],
    ],
  },
  {
    times: 1,
    story: refund,
    deliveries: [
      [1, 0],
      [0, later],
    ],
  },
  {
    times: 2,
    story: dunning,
    deliveries: [
      [1, 0],
      [0, later],
    ],
  },
  {
    times: 3,
    story: renewal,
    deliveries: [
      [1, 0],
      [0, later],
    ],
  },
  {
    times: 1,
    story: newcomer,
    deliveries: [
      [1, 0],
      [0, 0],
    ],
  },
  {
    times: 1,
    story: newcomer,
    deliveries: [
      [1, 0],
      [0, later],
    ],
  },
];

interface Part {
  story: Story;
  state: State;
  /** The place in the cycle of the first delivery of the story. */
  firstPlace: number;
  cyclesLater: number;
}

/** The part for each place of a cycle. The places of one kind are spread over it. */
const parts = ((): ReadonlyMap<number, Part> => {
  const places = Array.from({ length: cycleLength }, (_, n) => (n * 37) % cycleLength).filter(
    (place) => !isRepeat(place),
  );
  const made = new Map<number, Part>();
  for (const { times, story, deliveries } of script) {
    for (let n = 0; n < times; n++) {
      const own = places.splice(0, deliveries.length).sort((a, b) => a - b);
      const firstPlace = own[0]!;
      for (const [i, [state, cyclesLater]] of deliveries.entries()) {
        made.set(own[i]!, { story, state: story.states[state]!, firstPlace, cyclesLater });
      }
    }
  }
  return made;
})();

const placeOfRenewal = [...parts].find(([, { story }]) => story === renewal)![0];

function renewedBefore(number: number): number {
  return (Math.floor(number / cycleLength) - 1) * cycleLength + placeOfRenewal;
}

/** The event of a delivery. Its number is that of the delivery which it repeats, if it repeats one. */
export function realEvent(stream: EventStream, n: number): SampleEvent {
  if (isRepeat(n)) return realEvent(stream, repeatedBy(stream, n));
  const { story, state, firstPlace, cyclesLater } = parts.get(modulo(n, cycleLength))!;
  const cycle = Math.floor(n / cycleLength) - cyclesLater;
  const object = state.show(subject(stream, cycle * cycleLength + firstPlace));
  const id = objectId(stream.seed, `${story.path} event`, n);
  const event = {
    id,
    type: state.type,
    created_at: object["updated_at"],
    api_version: "2025-06-01",
    data: { object },
  };
  return { id, number: n, body: Buffer.from(JSON.stringify(event)) };
}

function repeatedBy({ seed }: EventStream, n: number): number {
  const random = createHash("md5").update(`${seed}:repeat:${n}`).digest().readUInt32BE() / 2 ** 32;
  if (!isLateRepeat(n)) return n - 1 - Math.floor(random * 9);
  const any = Math.floor(random * n);
  return isRepeat(any) ? any - 1 : any;
}

/**
 * An object of the stream at the service: `path` is its resource's, such as `orders`. Undefined for an object outside
 * the stream.
 */
export function currentObject(stream: EventStream, path: string, id: string): Wire | undefined {
  const number = numberOfId(id);
  const part = Number.isSafeInteger(number) ? parts.get(modulo(number, cycleLength)) : undefined;
  if (part === undefined || part.story.path !== path) return undefined;
  const { states, now = states.at(-1)!.show } = part.story;
  // No read shows the dunning fields.
  const { attempt_count: _, next_retry_at: __, ...shown } = now(subject(stream, number));
  return shown["id"] === id ? shown : undefined;
}

const subject = ({ seed, sinceMs }: EventStream, number: number): Subject => ({
  seed,
  number,
  at: (seconds) => new Date(sinceMs + number + seconds * 1_000).toISOString(),
});

/** Never negative. */
function modulo(n: number, by: number): number {
  return ((n % by) + by) % by;
}
