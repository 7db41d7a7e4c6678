import { createHash } from "node:crypto";
import type { SampleEvent } from "../load/protocol.ts";
import { sampleEvent, timeOf } from "../load/sample-events.ts";
import { objectId, order } from "../load/sample-objects.ts";
import { fillSeed, yearId } from "./year.ts";

/**
 * The event `n` of a stream that meets a database with a year of orders. Of eight, five are sample events: new orders,
 * their completion, a renewal, a new customer. The other three are about an order of that year, any of them: two change
 * it, one refunds it, with its sale and the refund.
 */
export function grownEvent(seed: string, n: number, orders: number): SampleEvent {
  const make = ofOld[n % 8];
  return make === undefined ? sampleEvent(seed, n) : make(seed, n, oldOrder(seed, n, orders));
}

/** The number of an order of the year, each as likely as any other. */
const oldOrder = (seed: string, n: number, orders: number): number =>
  1 + (createHash("md5").update(`${seed}:old:${n}`).digest().readUInt32BE() % orders);

type OldOrderEvent = (seed: string, n: number, number: number) => SampleEvent;

const changed: OldOrderEvent = (seed, n, number) =>
  event(seed, n, "order.updated", number, { status: "succeeded", sales: [saleOf(number)] });

const refunded: OldOrderEvent = (seed, n, number) => {
  const at = timeOf(n);
  const refund = {
    ...saleOf(number),
    id: objectId(seed, "refund", n),
    type: "refund",
    processor_transaction_id: `rf_${n}`,
    created_at: at,
    updated_at: at,
  };
  const sales = [saleOf(number), refund];
  return event(seed, n, "order.refunded", number, { status: "refunded", sales });
};

const ofOld: Readonly<Record<number, OldOrderEvent>> = { 2: changed, 4: changed, 5: refunded };

const saleOf = (number: number) => ({
  id: yearId("transaction", number),
  type: "sale",
  status: "succeeded",
  amount: 4_750,
  currency: "usd",
  processor_transaction_id: `pt_${number}`,
  attempt_count: 1,
  created_at: timeOf(0),
  updated_at: timeOf(0),
});

function event(
  seed: string,
  n: number,
  type: string,
  number: number,
  { status, sales }: { status: string; sales: Record<string, unknown>[] },
): SampleEvent {
  const id = objectId(seed, "event", n);
  const at = timeOf(n);
  const state = { number, createdAt: timeOf(0), updatedAt: at, status, transactions: sales };
  const object = { ...order(fillSeed, state), id: yearId("order", number) };
  const body = { id, type, created_at: at, api_version: "2025-06-01", data: { object } };
  return { id, number: n, body: Buffer.from(JSON.stringify(body)) };
}
