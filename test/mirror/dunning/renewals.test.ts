import { beforeEach, describe, expect, test } from "vitest";
import {
  findDeclinedOrders,
  declinedAttempts,
  nextRetryAfter,
} from "../../../src/core/mirror/dunning/declined-orders.ts";
import {
  findRenewal,
  recoveredRenewals,
  sumUnpaidRenewals,
  unpaidRenewals,
} from "../../../src/core/mirror/dunning/renewals.ts";
import { dunningDefaults, dunningStageOf } from "../../../src/core/mirror/dunning/stages.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { emptyMirror } from "../copies.ts";
import { apply, at, sampleEntry, sampleOrder, sampleSubscription, seen, shown } from "../samples.ts";

const database = useTestDatabase();
beforeEach(() => emptyMirror(database.db));

const day = 86_400;
const now = new Date(at(10 * day));
const sale = (n: number, fields: object = {}) =>
  sampleEntry({
    id: `sale-${n}`,
    status: "failed",
    failure_code: "expired_card",
    created_at: at(n * day),
    updated_at: at(n * day),
    ...fields,
  });
const renewal = (fields: object = {}) =>
  sampleOrder({
    status: "failed",
    failure_code: "expired_card",
    subscription_id: "subscription-1",
    subscription_cycle: 2,
    ...fields,
  });
const subscription = (fields: object = {}) => sampleSubscription({ status: "past_due", ...fields });
const unpaid = async () => unpaidRenewals(database.db, { now, limit: 10 });

describe("the renewals that are not paid", () => {
  test("are those that an event or a read shows as declined, of a subscription that goes on", async () => {
    await apply(database.db, seen("subscription", subscription(), 0));
    await apply(database.db, seen("order", renewal({ transactions: [sale(0)] }), 60));
    expect(await unpaid()).toMatchObject([
      {
        orderId: "order-1",
        attempts: 1,
        failureCode: "expired_card",
        totalMinor: 1_000n,
        nextRetryAt: "unknown",
        recoveredAt: null,
      },
    ]);
  });

  test.each<[string, object, object]>([
    ["a first charge", { subscription_cycle: null }, {}],
    ["a one-time order", { subscription_id: null }, {}],
    ["a paid renewal", { status: "succeeded" }, {}],
    ["a renewal of a canceled subscription", {}, { status: "canceled" }],
  ])("are not %s", async (_, order, sub) => {
    await apply(database.db, shown("subscription", subscription(sub)));
    await apply(database.db, shown("order", renewal({ transactions: [sale(0)], ...order })));
    expect(await unpaid()).toEqual([]);
  });

  test("are there as soon as the order's own event says so, without any charge", async () => {
    await apply(database.db, shown("subscription", subscription({ status: "active" })));
    const event = renewal({ attempt_count: 1, next_retry_at: at(12 * day) });
    await apply(database.db, shown("order", event));
    expect(await unpaid()).toMatchObject([{ attempts: 1, nextRetryAt: new Date(at(12 * day)) }]);
  });

  test.each<[string, object, object]>([
    ["an event that names it", { attempt_count: 2, next_retry_at: at(12 * day) }, {}],
    ["an event that says there is none", { attempt_count: 2, next_retry_at: null }, {}],
    ["an event that does not say", { attempt_count: 2 }, {}],
    ["an event of an earlier attempt", { attempt_count: 1, next_retry_at: at(5 * day) }, {}],
    ["the subscription", {}, { attempt_count: 2, next_retry_at: at(11 * day) }],
    ["the subscription, about another attempt", {}, { attempt_count: 1, next_retry_at: at(11 * day) }],
    ["the subscription, that none follows", {}, { attempt_count: 2, next_retry_at: null }],
    ["nothing", {}, {}],
  ])("have the next retry that alerts tell, by %s", async (_, order, sub) => {
    await apply(database.db, seen("subscription", subscription(sub), 60));
    const transactions = [sale(0), sale(3)];
    await apply(database.db, shown("order", renewal({ transactions, ...order })));
    const [known] = await findDeclinedOrders(database.db, ["order-1"]);
    if (known === undefined) throw new Error("the order is not known");
    const number = declinedAttempts(known).at(-1)?.number ?? 0;
    expect(await unpaid()).toMatchObject([{ attempts: number, nextRetryAt: nextRetryAfter(known, number) }]);
  });
});

test("a renewal that was paid after all is recovered from the time of that charge on", async () => {
  const paid = sale(5, { status: "succeeded", failure_code: null });
  await apply(database.db, shown("subscription", subscription({ status: "active" })));
  await apply(
    database.db,
    shown("order", renewal({ status: "succeeded", failure_code: null, transactions: [sale(0), paid] })),
  );
  const since = (seconds: number) => recoveredRenewals(database.db, { since: new Date(at(seconds)), limit: 10 });
  expect(await since(4 * day)).toMatchObject([
    {
      orderId: "order-1",
      attempts: 1,
      failureCode: "expired_card",
      recoveredAt: new Date(at(5 * day)),
    },
  ]);
  expect(await since(6 * day)).toEqual([]);
  expect(await findRenewal(database.db, "order-1")).toMatchObject({ state: "recovered" });
});

describe("a retry that the service makes as another order of the cycle", () => {
  const again = (fields: object = {}) =>
    renewal({
      id: "order-2",
      created_at: at(3 * day),
      updated_at: at(3 * day),
      transactions: [sale(3)],
      ...fields,
    });
  beforeEach(async () => {
    await apply(database.db, shown("subscription", subscription()));
    await apply(database.db, shown("order", renewal({ transactions: [sale(0)] })));
  });

  test("is the same renewal, once on the board, with the attempts of both", async () => {
    await apply(database.db, shown("order", again()));
    expect(await unpaid()).toMatchObject([{ orderId: "order-2", attempts: 2 }]);
    expect(await unpaid()).toHaveLength(1);
    expect(await sumUnpaidRenewals(database.db, { now })).toEqual([{ currency: "usd", totalMinor: 1_000n }]);
    expect(await findRenewal(database.db, "order-1")).toMatchObject({
      state: "in progress",
      attempts: 2,
    });
  });

  test("recovers it", async () => {
    const paid = sale(5, { status: "succeeded", failure_code: null });
    const order = again({ status: "succeeded", failure_code: null, transactions: [paid] });
    await apply(database.db, shown("order", order));
    expect(await unpaid()).toEqual([]);
    const since = new Date(at(4 * day));
    expect(await recoveredRenewals(database.db, { since, limit: 10 })).toMatchObject([
      { orderId: "order-2", attempts: 1, recoveredAt: new Date(at(5 * day)) },
    ]);
    expect(await findRenewal(database.db, "order-1")).toMatchObject({ state: "recovered" });
  });
});

test("a renewal whose order is voided is lost, though its subscription goes on", async () => {
  await apply(database.db, shown("subscription", subscription({ status: "active" })));
  await apply(database.db, shown("order", renewal({ status: "voided", updated_at: at(day), transactions: [sale(0)] })));
  expect(await unpaid()).toEqual([]);
  expect(await findRenewal(database.db, "order-1")).toMatchObject({ state: "lost" });
});

test("a renewal that failed again and was paid again was recovered then", async () => {
  const paid = (n: number) => sale(n, { status: "succeeded", failure_code: null });
  await apply(
    database.db,
    seen("subscription", subscription({ status: "active" }), 9 * day),
    seen("order", renewal({ status: "succeeded", transactions: [sale(1), paid(2), sale(6), paid(7)] }), 9 * day),
  );
  const since = new Date(at(5 * day));
  expect(await recoveredRenewals(database.db, { since, limit: 10 })).toMatchObject([
    { orderId: "order-1", recoveredAt: new Date(at(7 * day)) },
  ]);
});

test("an order that was never declined is no renewal to look after", async () => {
  await apply(database.db, shown("order", renewal({ status: "succeeded", failure_code: null })));
  expect(await findRenewal(database.db, "order-1")).toBeNull();
  expect(await findRenewal(database.db, "\u0000")).toBeNull();
});

test.each([
  [1, 100, "first"],
  [2, 100, "retrying"],
  [2, 10, "retrying"],
  [3, 100, "retrying"],
  [3, 48, "last-retry"],
  [5, 1, "last-retry"],
  [3, null, "final"],
  [1, null, "final"],
  [3, "unknown", "retrying"],
  [1, "unknown", "first"],
] as const)("after %s attempts with the next one in %s hours, the stage is %s", (attempts, hours, stage) => {
  const nextRetryAt = typeof hours === "number" ? new Date(now.getTime() + hours * 3_600_000) : hours;
  expect(dunningStageOf({ attempts, nextRetryAt }, dunningDefaults, now)).toBe(stage);
});
