import { createHash } from "node:crypto";
import type { SampleEvent } from "../load/protocol.ts";
import { sampleEvent, timeOf } from "../load/sample-events.ts";
import { objectId } from "../load/sample-objects.ts";
import { yearId, yearOrder } from "./year.ts";

/**
 * The event `n` of a stream that meets a database with a year of orders. Of eight, five are sample events: new orders,
 * their completion, a renewal, a new customer. The other three are about a paid order of that year, any of them: two
 * change it, one refunds it, with its sale and the refund. What never changes of an order is as it was: its customer,
 * its subscription and its time of creation, on which there are indexes.
 */
export function grownEvent(seed: string, n: number, orders: number): SampleEvent {
  const make = ofOld[n % 8];
  return make === undefined ? sampleEvent(seed, n) : make(seed, n, paidOrder(seed, n, orders));
}

interface OldOrder {
  /** Within the year, from 1. */
  number: number;
  /** Its state at the service before the event. */
  object: { total: number; currency: string; created_at: string };
}

/** The last ones of each 200 orders of the year are paid and were never refunded or charged back. */
const [ofYear, firstPaid] = [200, 39];

/** An order of the year that is paid, each as likely as any other. */
function paidOrder(seed: string, n: number, orders: number): OldOrder {
  const digest = createHash("md5").update(`${seed}:old:${n}`).digest();
  const block = digest.readUInt32BE(0) % Math.max(1, Math.floor(orders / ofYear));
  const paid = firstPaid + (digest.readUInt32BE(4) % (ofYear - firstPaid));
  const number = block * ofYear + paid;
  return { number, object: JSON.parse(yearOrder(orders, number)) as OldOrder["object"] };
}

type OldOrderEvent = (seed: string, n: number, order: OldOrder) => SampleEvent;

const changed: OldOrderEvent = (seed, n, order) =>
  event(seed, n, "order.updated", { ...order.object, transactions: [saleOf(order)] });

const refunded: OldOrderEvent = (seed, n, order) => {
  const at = timeOf(n);
  const refund = {
    ...saleOf(order),
    id: objectId(seed, "refund", n),
    type: "refund",
    processor_transaction_id: `rf_${n}`,
    created_at: at,
    updated_at: at,
  };
  const transactions = [saleOf(order), refund];
  return event(seed, n, "order.refunded", { ...order.object, status: "refunded", transactions });
};

const ofOld: Readonly<Record<number, OldOrderEvent>> = { 2: changed, 4: changed, 5: refunded };

const saleOf = ({ number, object: { total, currency, created_at } }: OldOrder) => ({
  id: yearId("transaction", number),
  type: "sale",
  status: "succeeded",
  amount: total,
  currency,
  processor_transaction_id: `pt_${number}`,
  attempt_count: 1,
  created_at,
  updated_at: created_at,
});

function event(seed: string, n: number, type: string, order: Readonly<Record<string, unknown>>): SampleEvent {
  const id = objectId(seed, "event", n);
  const at = timeOf(n);
  const object = { ...order, updated_at: at };
  const body = { id, type, created_at: at, api_version: "2025-06-01", data: { object } };
  return { id, number: n, body: Buffer.from(JSON.stringify(body)) };
}
