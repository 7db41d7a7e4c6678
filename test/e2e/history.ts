import { createHash } from "node:crypto";
import type { Random } from "../../src/platform/random.ts";

export type WireObject = Record<string, unknown> & { id: string; updated_at: string };

/** One delivery that the service would make: a full state of one object, different from all others. */
export interface HistoryEvent {
  id: string;
  sha256: string;
  body: Buffer;
  /** The group of fields under which `mirror.versions` keeps the state. */
  resource: "order" | "subscription" | "customer";
  objectId: string;
  updatedAt: string;
}

export interface ModelOrder extends WireObject {
  status: string;
  total: number;
  transactions: { id: string; status: string; amount: number; type: string }[];
}

/** What the service itself knows after all events that were taken: what the mirror has to equal. */
export interface Model {
  orders: Map<string, ModelOrder>;
  subscriptions: Map<string, WireObject & { status: string }>;
  customers: Map<string, WireObject & { email: string }>;
  /** `attempt_count` of the last `order.failed`, by order. */
  attempts: Map<string, number>;
  /** By order. */
  chargebacks: Map<string, { state: string; amount: number }>;
}

export interface History {
  readonly model: Model;
  next(): HistoryEvent;
}

type Step = () => { type: string; resource: HistoryEvent["resource"]; object: WireObject };
/** What may happen to an object next; null when its life is over. */
type Life = { step: Step; next: () => Life | null };

const firstInstantMs = Date.UTC(2026, 0, 1);
const newObjectRate = 0.4;
// Bodies of the size that the service sends.
const filler = { note: "x".repeat(300), campaign: "spring", channel: "web" };

/**
 * Orders, subscriptions and customers that live through their states, without end. The same for the same random. A part
 * of all events, `hotRate`, is of one subscription.
 */
export function createHistory(random: Random, { hotRate = 0 } = {}): History {
  const model: Model = {
    orders: new Map(),
    subscriptions: new Map(),
    customers: new Map(),
    attempts: new Map(),
    chargebacks: new Map(),
  };
  const alive: Life[] = [];
  let nowMs = firstInstantMs;

  const now = (): string => new Date(nowMs).toISOString();
  const chance = (probability: number): boolean => random() < probability;
  const uuid = (): string => {
    const hex = Array.from({ length: 32 }, () => Math.floor(random() * 16).toString(16)).join("");
    return hex.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, "$1-$2-4$3-8$4-$5");
  };

  const bornOrder = (): Life => {
    const amount = 500 + Math.floor(random() * 50_000);
    const id = uuid();
    let order: ModelOrder = {
      id,
      order_number: id.slice(0, 8).toUpperCase(),
      customer_id: uuid(),
      status: "pending",
      items: [{ id: uuid(), product_id: "prod_1", name: "Tea", quantity: 1, price: amount }],
      subtotal: amount,
      discount_amount: 0,
      total: amount,
      currency: "usd",
      transactions: [{ id: uuid(), type: "sale", status: "pending", amount }],
      metadata: filler,
      created_at: now(),
      updated_at: now(),
    };
    const become = (type: string, status: string, saleStatus: string, more = {}): Step => {
      return () => {
        const [sale, ...rest] = order.transactions;
        const transactions = sale === undefined ? [] : [{ ...sale, status: saleStatus }, ...rest];
        order = { ...order, status, transactions, updated_at: now() };
        model.orders.set(id, order);
        return { type, resource: "order", object: { ...order, ...more } };
      };
    };
    const refund = (status: string): Life => ({
      step: () => {
        const part = { id: uuid(), type: "refund", status: "succeeded", amount: amount >> 1 };
        order = { ...order, transactions: [...order.transactions, part] };
        return become("order.refunded", status, "succeeded")();
      },
      next: () => (status === "partially_refunded" ? refund("refunded") : null),
    });
    const dispute = (type: string, status: string, state: string): Life => ({
      step: () => {
        model.chargebacks.set(id, { state, amount });
        return become(type, status, "chargeback")();
      },
      next: () => {
        if (state !== "opened") return null;
        return chance(0.5)
          ? dispute("order.chargeback_accepted", "chargeback_accepted", "accepted")
          : dispute("order.chargeback_dismissed", "chargeback_dismissed", "dismissed");
      },
    });
    const success: Life = {
      step: become("order.succeeded", "succeeded", "succeeded"),
      next: () => {
        if (chance(0.3)) return refund("partially_refunded");
        return chance(0.15) ? dispute("order.chargeback", "chargeback", "opened") : null;
      },
    };
    const failure = (attempt: number): Life => ({
      step: () => {
        model.attempts.set(id, attempt);
        const dunning = { attempt_count: attempt, next_retry_at: new Date(nowMs + 9e7) };
        return become("order.failed", "failed", "failed", dunning)();
      },
      next: () => (attempt < 4 && chance(0.6) ? failure(attempt + 1) : success),
    });
    return {
      step: become("order.created", "pending", "pending"),
      next: () => (chance(0.2) ? failure(1) : success),
    };
  };

  const bornSubscription = ({ isCanceled = true } = {}): Life => {
    let subscription = {
      id: uuid(),
      customer_id: uuid(),
      plan: { id: "plan_1", name: "Monthly tea", amount: 2_500, currency: "usd" },
      status: "active",
      billing_cycle: { interval: "month", interval_count: 1 },
      current_billing_cycle: 1,
      total_billing_cycles: 0,
      metadata: filler,
      created_at: now(),
      updated_at: now(),
    };
    const become = (type: string, change: Partial<typeof subscription>): Step => {
      return () => {
        subscription = { ...subscription, ...change, updated_at: now() };
        model.subscriptions.set(subscription.id, subscription);
        return { type, resource: "subscription", object: subscription };
      };
    };
    const charge = (cycle: number): Life => ({
      step: become("subscription.charged", { current_billing_cycle: cycle }),
      next: () => (!isCanceled || chance(0.8) ? charge(cycle + 1) : cancel),
    });
    const cancel: Life = {
      step: become("subscription.canceled", { status: "canceled" }),
      next: () => null,
    };
    return { step: become("subscription.created", {}), next: () => charge(2) };
  };

  const bornCustomer = (): Life => {
    const id = uuid();
    let customer = { id, email: "", metadata: filler, created_at: now(), updated_at: now() };
    const become = (type: string, times: number): Life => ({
      step: () => {
        customer = { ...customer, email: `${id}+${times}@example.test`, updated_at: now() };
        model.customers.set(id, customer);
        return { type, resource: "customer", object: customer };
      },
      next: () => (chance(0.5) ? become("customer.updated", times + 1) : null),
    });
    return become("customer.created", 1);
  };

  const born = (): Life => {
    const draw = random();
    if (draw < 0.7) return bornOrder();
    return draw < 0.85 ? bornSubscription() : bornCustomer();
  };

  const takeLife = (): Life => {
    if (alive.length === 0 || chance(newObjectRate)) return born();
    // The last one fills the gap: order does not matter here.
    const index = Math.floor(random() * alive.length);
    const last = alive.pop();
    if (last === undefined) throw new Error("nobody is alive");
    if (index === alive.length) return last;
    const taken = alive[index];
    alive[index] = last;
    return taken ?? last;
  };

  let hot: Life | null = null;
  return {
    model,
    next() {
      nowMs += 1 + Math.floor(random() * 2_000);
      const isHot = hotRate > 0 && chance(hotRate);
      const life = isHot ? (hot ?? bornSubscription({ isCanceled: false })) : takeLife();
      const { type, resource, object } = life.step();
      const following = life.next();
      if (isHot) hot = following;
      else if (following !== null) alive.push(following);
      const id = `evt_${uuid()}`;
      const created_at = now();
      const body = Buffer.from(JSON.stringify({ id, type, created_at, api_version: "2026-01-01", data: { object } }));
      const sha256 = createHash("sha256").update(body).digest("hex");
      return { id, sha256, body, resource, objectId: object.id, updatedAt: object.updated_at };
    },
  };
}
