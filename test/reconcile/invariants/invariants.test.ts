import { beforeEach, describe, expect, it } from "vitest";
import type { Snapshot } from "../../../src/core/mirror/snapshot.ts";
import { allInvariants, checkInvariants } from "../../../src/parts/reconcile/invariants/check-invariants.ts";
import { emptyMirror } from "../../mirror/copies.ts";
import { at } from "../../mirror/samples.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import {
  applyAll,
  couponOf,
  customer,
  cycle,
  declinedCycle,
  listed,
  now,
  order,
  paidOrder,
  refund,
  sale,
  subscription,
  told,
  wholeMirror,
} from "./whole-mirror.ts";
import { emptyTables } from "../../support/empty-tables.ts";

const days = 86_400;
const options = { modes: {}, run: null, timeZone: "UTC" };
const moment = { now, asOf: now };

const database = useTestDatabase();
beforeEach(async () => {
  await emptyMirror(database.db);
  await emptyTables(database.db, ["reconcile.findings"], { numbersRestart: true });
});

interface FindingRow {
  identity: string;
  object_id: string;
  amount_at_risk_minor: string | null;
  differences: { service: string; mirror: string }[];
}

/** What is open: `identity of object`, with what is at risk. */
async function check(observations: readonly Snapshot[]): Promise<Record<string, number | null>> {
  await applyAll(database.db, observations);
  await checkInvariants(database.db, moment, options);
  const rows = await database.db<FindingRow>("reconcile.findings").whereNot("state", "healed");
  return Object.fromEntries(
    rows.map(({ identity, object_id, amount_at_risk_minor: risk }) => [
      `${identity} of ${object_id}`,
      risk === null ? null : Number(risk),
    ]),
  );
}

const renewal = { created_at: at(5 * days), updated_at: at(5 * days) };
const usd = "roll_forward of usd";
const entry = { id: "entry", type: "sale", status: "succeeded", amount: 1_000 };
const unsettled = { status: "in_progress", created_at: at(8 * days), updated_at: at(8 * days) };

/**
 * The smallest fault of each identity, added to the whole mirror, and all that is found: where money is wrong, the
 * ledger does not add up either.
 */
const faults: Record<string, [what: string, Snapshot[], Record<string, number | null>][]> = {
  total: [
    ["a total that is not net of the discount", paidOrder("x", { total: 990 }, { amount: 990 }), { "total of x": 10 }],
  ],
  bounds: [
    [
      "a discount above the subtotal",
      [
        ...paidOrder(
          "x",
          {
            subtotal: 100,
            discount_amount: 150,
            total: 0,
            applied_coupon: couponOf({ amount: 150 }),
          },
          { amount: 0 },
        ),
      ],
      { "bounds of x": 50, "total of x": 50, "coupon_fixed of x": 50 },
    ],
  ],
  coupon_null: [
    [
      "a discount without a coupon",
      paidOrder("x", { discount_amount: 100, total: 900 }, { amount: 900 }),
      { "coupon_null of x": 100 },
    ],
  ],
  coupon_fixed: [
    [
      "more off than the coupon gives",
      paidOrder("x", { discount_amount: 301, total: 699, applied_coupon: couponOf({ amount: 300 }) }, { amount: 699 }),
      { "coupon_fixed of x": 1 },
    ],
    [
      "less off than a coupon for everything gives",
      paidOrder(
        "x",
        {
          discount_amount: 299,
          total: 701,
          applied_coupon: couponOf({ amount: 300, product_scope: "all" }),
        },
        { amount: 701 },
      ),
      { "coupon_fixed of x": 1 },
    ],
  ],
  coupon_percentage: [
    [
      "a share that was rounded up",
      paidOrder(
        "x",
        {
          subtotal: 333,
          discount_amount: 34,
          total: 299,
          applied_coupon: couponOf({ percentage: 10 }),
        },
        { amount: 299 },
      ),
      { "coupon_percentage of x": 1 },
    ],
    [
      "more off than the cap",
      paidOrder(
        "x",
        {
          discount_amount: 100,
          total: 900,
          applied_coupon: couponOf({ percentage: 10, max_discount_amount: 50 }),
        },
        { amount: 900 },
      ),
      { "coupon_percentage of x": 50 },
    ],
  ],
  coupon_shape: [
    [
      "a cap on an amount off",
      paidOrder(
        "x",
        {
          discount_amount: 300,
          total: 700,
          applied_coupon: couponOf({ amount: 300, max_discount_amount: 300 }),
        },
        { amount: 700 },
      ),
      { "coupon_shape of x": 300 },
    ],
  ],
  one_sale: [
    [
      "two captured sales",
      [...paidOrder("x"), listed("transaction", sale("x", { id: "again" }))],
      { "one_sale of x": 1_000, [usd]: 1_000 },
    ],
    [
      "a captured sale, and another on the way to it",
      [...paidOrder("x"), listed("transaction", sale("x", { id: "again", ...unsettled }))],
      { "one_sale of x": 1_000, [usd]: 1_000 },
    ],
  ],
  sale_amount: [
    ["a sale over less than the order", paidOrder("x", {}, { amount: 900 }), { "sale_amount of x": 100, [usd]: 100 }],
    [
      "an unsettled sale over less than the order",
      paidOrder("x", {}, { amount: 900, ...unsettled }),
      { "sale_amount of x": 100, [usd]: 100 },
    ],
  ],
  paid_status: [
    ["a paid order without a sale", [listed("order", order("x"))], { "paid_status of x": 1_000, [usd]: 1_000 }],
    [
      "a failed order with a captured sale",
      paidOrder("x", { status: "failed", failure_code: "unknown" }),
      { "paid_status of x": 1_000, [usd]: 1_000 },
    ],
    [
      "a failed order without a code",
      paidOrder("x", { status: "failed" }, { status: "failed" }),
      { "paid_status of x": 0 },
    ],
  ],
  refund_cap: [
    [
      "refunds above the total",
      [
        ...paidOrder("x", { status: "refunded" }),
        listed("transaction", refund("x", 1_000)),
        listed("transaction", refund("x", 100, { id: "more" })),
      ],
      { "refund_cap of x": 100, [usd]: 100 },
    ],
  ],
  refund_status: [
    [
      "a succeeded order of which something was refunded",
      [...paidOrder("x"), listed("transaction", refund("x", 100))],
      { "refund_status of x": 100, [usd]: 100 },
    ],
    [
      "a partially refunded order of which everything was",
      [...paidOrder("x", { status: "partially_refunded" }), listed("transaction", refund("x", 1_000))],
      { "refund_status of x": 0 },
    ],
    [
      "a refunded order of which a part was",
      [...paidOrder("x", { status: "refunded" }), listed("transaction", refund("x", 400))],
      { "refund_status of x": 600, [usd]: 600 },
    ],
  ],
  refund_failed: [
    [
      "the status with a latest refund that succeeded",
      [
        ...paidOrder("x", { status: "refund_failed" }),
        listed("transaction", refund("x", 400, { status: "failed" })),
        listed("transaction", refund("x", 400, { id: "then", created_at: at(70), updated_at: at(70) })),
      ],
      { "refund_failed of x": 400 },
    ],
  ],
  refund_parent: [
    [
      "a refund of an order that was never paid",
      [
        ...paidOrder("x", { status: "failed", failure_code: "unknown" }, { status: "failed" }),
        listed("transaction", refund("x", 400, { status: "failed" })),
      ],
      { "refund_parent of refund-of-x": 400 },
    ],
    [
      "a refund before its sale",
      [
        ...paidOrder("x", { status: "refunded" }),
        listed("transaction", refund("x", 1_000, { created_at: at(0), updated_at: at(0) })),
      ],
      { "refund_parent of refund-of-x": 1_000 },
    ],
  ],
  same_party: [
    ["a sale to another customer", paidOrder("x", {}, { customer_id: "customer-2" }), { "same_party of x": 1_000 }],
    ["a sale on another card", paidOrder("x", {}, { payment_method: { id: "card-2" } }), { "same_party of x": 1_000 }],
  ],
  attempts: [
    [
      "fewer sales than attempts",
      [
        told(
          "order",
          order("x", {
            status: "failed",
            failure_code: "unknown",
            attempt_count: 3,
            updated_at: at(1),
          }),
        ),
        listed("transaction", sale("x", { status: "failed" })),
      ],
      { "attempts of x": null },
    ],
    [
      "a count that fell",
      [
        told("order", order("x", { status: "failed", failure_code: "unknown", attempt_count: 2 })),
        told(
          "order",
          order("x", {
            status: "failed",
            failure_code: "unknown",
            attempt_count: 1,
            updated_at: at(5),
          }),
        ),
        listed("transaction", sale("x", { status: "failed" })),
        listed("transaction", sale("x", { id: "second", status: "failed" })),
      ],
      { "attempts of x": null },
    ],
  ],
  double_order: [
    [
      "the same items twice",
      [
        ...paidOrder("x", { items: [{ product_id: "p", quantity: 1 }], created_at: at(900) }),
        ...paidOrder("y", { items: [{ product_id: "p", quantity: 1 }], created_at: at(960) }),
      ].map((observation) => ({
        ...observation,
        object: { ...observation.object, updated_at: at(990) },
      })),
      { "double_order of y": 1_000 },
    ],
  ],
  pending_age: [
    [
      "an order that waits for its charge",
      [listed("order", order("x", { status: "pending" }))],
      { "pending_age of x": 1_000 },
    ],
    [
      "a transaction that does not settle",
      [listed("order", order("x", { status: "voided" })), listed("transaction", sale("x", { status: "in_progress" }))],
      { "pending_age of sale-of-x": 1_000 },
    ],
  ],
  orphan: [
    [
      "a failed sale without an order",
      [listed("transaction", sale(null, { id: "x", status: "failed" }))],
      { "orphan of x": 1_000 },
    ],
  ],
  bookable: [
    [
      "a sale whose order's entry, all that is known of it, tells no time",
      [listed("order", order("x", { transactions: [entry] }))],
      { "bookable of entry": 1_000 },
    ],
    [
      "a sale without a time that is paid and not settled",
      [listed("order", order("x", { transactions: [{ ...entry, status: "in_progress" }] }))],
      { "bookable of entry": 1_000 },
    ],
    [
      "a transaction of a type that no balance knows",
      [...paidOrder("x"), listed("transaction", sale("x", { id: "y", type: "adjustment", amount: 70 }))],
      { "bookable of y": 70 },
    ],
  ],
  order_number: [
    ["too short a number", paidOrder("x", { order_number: "AB1" }), { "order_number of x": null }],
    [
      "a number that two orders have",
      [...paidOrder("x", { order_number: "SAME0001" }), ...paidOrder("y", { order_number: "SAME0001" })],
      { "order_number of x": null, "order_number of y": null },
    ],
  ],
  time: [
    ["an order that changed before it was made", paidOrder("x", { updated_at: at(-5) }), { "time of x": null }],
    [
      "a later look that shows an earlier change",
      [
        {
          ...listed("customer", customer("x", { updated_at: at(50) })),
          observedAt: "2025-03-05T00:00:00.000000Z",
        },
        listed("customer", customer("x", { first_name: "Old", updated_at: at(40) })),
      ],
      { "time of x": null },
    ],
  ],
  chargeback_match: [
    [
      "a disputed order whose sale was not charged back",
      paidOrder("x", { status: "chargeback", updated_at: at(90) }),
      { "chargeback_match of x": 1_000 },
    ],
    [
      "a dismissed chargeback that was seen open, without its sale",
      [
        told("order", order("x", { status: "chargeback", updated_at: at(70) })),
        ...paidOrder("x", { status: "chargeback_dismissed", updated_at: at(90) }),
      ],
      { "chargeback_match of x": 1_000 },
    ],
    [
      "a paid order whose sale was charged back",
      paidOrder("x", {}, { status: "chargeback", updated_at: at(90) }),
      { "chargeback_match of x": 1_000 },
    ],
  ],
  chargeback_origin: [
    [
      "a chargeback before its sale",
      paidOrder(
        "x",
        { status: "chargeback", updated_at: at(5) },
        { status: "chargeback", created_at: at(30), updated_at: at(30) },
      ),
      { "chargeback_origin of x": 1_000 },
    ],
    [
      "an accepted one that was opened again",
      [
        told("order", order("x", { status: "chargeback_accepted", updated_at: at(70) })),
        ...paidOrder("x", { status: "chargeback", updated_at: at(90) }, { status: "chargeback", updated_at: at(70) }),
      ],
      { "chargeback_origin of x": 1_000 },
    ],
    [
      "one that was opened and accepted at one time, and dismissed later",
      ["x", "y", "z"].flatMap((id) => [
        told("order", order(id, { status: "chargeback", updated_at: at(70) })),
        told("order", order(id, { status: "chargeback_accepted", updated_at: at(70) })),
        ...paidOrder(
          id,
          { status: "chargeback_dismissed", updated_at: at(90) },
          { status: "chargeback", updated_at: at(70) },
        ),
      ]),
      Object.fromEntries(["x", "y", "z"].map((id) => [`chargeback_origin of ${id}`, 1_000])),
    ],
  ],
  double_loss: [
    [
      "a refund after the chargeback",
      [
        ...paidOrder("x", { status: "chargeback", updated_at: at(50) }, { status: "chargeback", updated_at: at(50) }),
        listed("transaction", refund("x", 300)),
      ],
      { "double_loss of x": 300 },
    ],
    [
      "a chargeback of what was refunded whole",
      [
        ...paidOrder("x", { status: "chargeback", updated_at: at(90) }, { status: "chargeback", updated_at: at(90) }),
        listed("transaction", refund("x", 1_000)),
      ],
      { "double_loss of x": 1_000 },
    ],
  ],
  double_loss_partial: [
    [
      "the whole sale charged back after a part was refunded",
      [
        ...paidOrder(
          "x",
          { status: "chargeback_accepted", updated_at: at(90) },
          { status: "chargeback", updated_at: at(90) },
        ),
        listed("transaction", refund("x", 300)),
      ],
      { "double_loss_partial of x": 300 },
    ],
  ],
  chargeback_aging: [
    [
      "one that is open since autumn",
      paidOrder(
        "x",
        { status: "chargeback", created_at: at(-150 * days), updated_at: at(-130 * days) },
        { status: "chargeback", created_at: at(-150 * days), updated_at: at(-130 * days) },
      ),
      { "chargeback_aging of x": 1_000 },
    ],
  ],
  cycles: [
    [
      "a cycle that is missing",
      [
        listed("subscription", subscription("x", { current_billing_cycle: 3 })),
        ...cycle("x", 1),
        ...cycle("x", 3, renewal),
      ],
      { "cycles of x": 1_000 },
    ],
  ],
  cycle_once: [
    [
      "a cycle that was paid twice",
      [
        listed("subscription", subscription("x")),
        ...cycle("x", 1),
        ...paidOrder("x-again", { subscription_id: "x", subscription_cycle: 1 }),
      ],
      { "cycle_once of x": 1_000 },
    ],
  ],
  cycle_amount: [
    [
      "a renewal at another price",
      [
        listed("subscription", subscription("x", { current_billing_cycle: 2 })),
        ...cycle("x", 1),
        ...cycle("x", 2, { ...renewal, subtotal: 1_100, total: 1_100 }, { amount: 1_100 }),
      ],
      { "cycle_amount of x-2": 100 },
    ],
    [
      "a first cycle below the plan",
      [listed("subscription", subscription("x")), ...cycle("x", 1, { subtotal: 900, total: 900 }, { amount: 900 })],
      { "cycle_amount of x-1": 100 },
    ],
  ],
  coupon_duration: [
    [
      "a renewal with the discount of the first cycle",
      [
        listed(
          "subscription",
          subscription("x", {
            current_billing_cycle: 2,
            applied_coupon: couponOf({ amount: 100, duration: "once" }),
          }),
        ),
        ...cycle(
          "x",
          1,
          { discount_amount: 100, total: 900, applied_coupon: couponOf({ amount: 100 }) },
          { amount: 900 },
        ),
        ...cycle(
          "x",
          2,
          {
            ...renewal,
            discount_amount: 100,
            total: 900,
            applied_coupon: couponOf({ amount: 100 }),
          },
          { amount: 900 },
        ),
      ],
      { "coupon_duration of x-2": 100 },
    ],
    [
      "a renewal without the discount it is due",
      [
        listed(
          "subscription",
          subscription("x", {
            applied_coupon: couponOf({ amount: 100, duration: "repeating", duration_in_cycles: 2 }),
          }),
        ),
        ...cycle("x", 1),
      ],
      { "coupon_duration of x-1": null },
    ],
  ],
  missed_charge: [
    [
      "a renewal that did not come",
      [
        listed(
          "subscription",
          subscription("x", {
            billing_cycle: { interval: "day", interval_count: 7 },
            current_period_end: at(7 * days),
            next_billing_date: at(7 * days),
          }),
        ),
        ...cycle("x", 1),
      ],
      { "missed_charge of x": 1_000 },
    ],
  ],
  stalled_dunning: [
    [
      "a retry that did not come",
      [
        listed("subscription", subscription("x", { status: "past_due", next_retry_at: at(8 * days) })),
        ...cycle("x", 1),
        ...declinedCycle("x", 2, { created_at: at(7 * days), updated_at: at(7 * days) }),
      ],
      { "stalled_dunning of x": 1_000 },
    ],
  ],
  after_cancel: [
    [
      "an order after the cancellation",
      [
        listed(
          "subscription",
          subscription("x", { status: "canceled", canceled_at: at(100), next_billing_date: null }),
        ),
        ...cycle("x", 1),
        ...cycle("x", 2, renewal),
      ],
      { "after_cancel of x-2": 1_000 },
    ],
    [
      "an order after the last one",
      [
        told("subscription", subscription("x", { status: "completed", updated_at: at(50) })),
        listed("subscription", subscription("x", { status: "completed", updated_at: at(60) })),
        ...cycle("x", 1),
        ...cycle("x", 2, renewal),
      ],
      { "after_cancel of x-2": 1_000 },
    ],
  ],
  past_due: [
    [
      "an active subscription whose latest cycle failed",
      [listed("subscription", subscription("x")), ...cycle("x", 1), ...declinedCycle("x", 2, renewal)],
      { "past_due of x": 1_000 },
    ],
    [
      "a past-due one whose latest cycle was paid",
      [listed("subscription", subscription("x", { status: "past_due" })), ...cycle("x", 1)],
      { "past_due of x": 1_000 },
    ],
  ],
  failed_subscription: [
    [
      "a failed subscription that was paid",
      [listed("subscription", subscription("x", { status: "failed", next_billing_date: null })), ...cycle("x", 1)],
      { "failed_subscription of x": 1_000 },
    ],
  ],
  period: [
    [
      "a month that ends two days late",
      [
        listed(
          "subscription",
          subscription("x", {
            current_period_end: at(33 * days),
            next_billing_date: at(33 * days),
          }),
        ),
        ...cycle("x", 1),
      ],
      { "period of x": null },
    ],
    [
      "a billing date that is not the period's end",
      [listed("subscription", subscription("x", { next_billing_date: at(30 * days) })), ...cycle("x", 1)],
      { "period of x": null },
    ],
  ],
  term: [
    [
      "a subscription that goes on after its last cycle",
      [listed("subscription", subscription("x", { total_billing_cycles: 1 })), ...cycle("x", 1)],
      { "term of x": null },
    ],
  ],
  canceled_at: [
    [
      "an active subscription that was canceled",
      [listed("subscription", subscription("x", { canceled_at: at(9 * days) })), ...cycle("x", 1)],
      { "canceled_at of x": null },
    ],
  ],
  deleted_live: [
    [
      "a deleted customer who still pays",
      [
        listed("customer", customer("x", { deleted: true })),
        listed("subscription", subscription("x-sub", { customer_id: "x" })),
        ...cycle("x-sub", 1, { customer_id: "x" }, { customer_id: "x" }),
      ],
      { "deleted_live of x": 1_000 },
    ],
  ],
  roll_forward: [["a sale of an order that is not there", [listed("transaction", sale("nowhere"))], { [usd]: 1_000 }]],
};

describe("a mirror in which everything is right", () => {
  it("breaks no identity", async () => {
    expect(await check(wholeMirror())).toEqual({});
  });

  // So it is after an import: the sale has its status back, and no list tells what it was.
  it("says nothing of the sale of a dismissed chargeback that was never seen open", async () => {
    const dismissed = paidOrder("x", { status: "chargeback_dismissed", updated_at: at(90) });
    expect(await check([...wholeMirror(), ...dismissed])).toEqual({});
  });
});

describe("the smallest fault", () => {
  const cases = Object.entries(faults).flatMap(([identity, list]) =>
    list.map(([what, observations, found]) => ({ identity, what, observations, found })),
  );
  it.each(cases)("$identity: finds $what", async ({ observations, found }) => {
    expect(await check([...wholeMirror(), ...observations])).toEqual(found);
  });

  it("is known for every identity", () => {
    const names = allInvariants.map(({ name }) => name).filter((name) => name !== "control");
    expect(Object.keys(faults).sort()).toEqual(names.sort());
  });
});

describe("the period of a subscription", () => {
  it.each([
    {
      where: "New York, from 30 January on, after the short month",
      start_date: "2025-01-31T02:00:00.000Z",
      current_period_start: "2025-03-01T02:00:00.000Z",
      current_period_end: "2025-03-31T01:00:00.000Z",
    },
    {
      where: "Tokyo, on the first of each month",
      anchor_day: 1,
      start_date: "2024-12-31T15:30:00.000Z",
      current_period_start: "2025-02-28T15:30:00.000Z",
      current_period_end: "2025-03-31T15:30:00.000Z",
    },
    {
      where: "Auckland, on the last of each month",
      anchor_day: 31,
      start_date: "2025-01-30T11:30:00.000Z",
      current_period_start: "2025-02-27T11:30:00.000Z",
      current_period_end: "2025-03-30T11:30:00.000Z",
    },
  ])("ends where it does by the days of $where", async ({ anchor_day, ...times }) => {
    const billing_cycle = { interval: "month", interval_count: 1, anchor_day };
    const next_billing_date = times.current_period_end;
    const fields = { ...times, where: undefined, billing_cycle, next_billing_date };
    const found = await check([listed("subscription", subscription("x", fields))]);
    expect(Object.keys(found).filter((name) => name.startsWith("period"))).toEqual([]);
  });
});

it("has a sale that no balance contains, since it tells no time, keep every month from being proved", async () => {
  await check([listed("order", order("x", { transactions: [{ ...entry, created_at: "soon" }] }))]);
  const [finding] = await database.db("reconcile.findings").select("severity", "object_at");
  expect(finding).toEqual({ severity: "critical", object_at: null });
});
