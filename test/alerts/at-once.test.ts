import type { Knex } from "knex";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { assess } from "../../src/parts/alerts/assess.ts";
import type { FoundBy } from "../../src/parts/alerts/alert-context.ts";
import { applySnapshots } from "../../src/core/mirror/write/apply.ts";
import type { Snapshot } from "../../src/core/mirror/snapshot.ts";
import { at, sampleEntry, sampleOrder, sampleSubscription, sampleTransaction, shown } from "../mirror/samples.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { untilWaiting } from "../support/until-waiting.ts";
import { emptyAll } from "../worker/worker-stand.ts";
import { alertRows, messagesOf } from "./timeline-stand.ts";
import { standingClock, unresolved } from "./sweep-stand.ts";
import { settingsOf, testAlertContext } from "./test-alert-context.ts";

const database = useTestDatabase();
let db: Knex;
beforeAll(() => {
  ({ db } = database);
});
beforeEach(() => emptyAll(db));

const clock = standingClock("2026-03-01T12:00:00.000Z");
/** Two declines are a storm here: few enough to have no turn to wait for. */
const settings = settingsOf({ rules: { decline_storm: { atLeast: 1 } } });
const alertContext = testAlertContext({ settings, clock, serviceClock: clock });

/** Writes and assesses as a worker does; `held` keeps the transaction open. */
async function learn(
  observations: Snapshot[],
  { foundBy = "event", held }: { foundBy?: FoundBy; held?: () => Promise<void> } = {},
): Promise<void> {
  await db.transaction(async (trx) => {
    const { written } = await applySnapshots(trx, observations);
    await assess(trx, alertContext, written, foundBy);
    await held?.();
  });
}

/** The second begins when the first has assessed; the first commits when the second waits or has ended. */
async function atOnce(first: Snapshot[], second: Snapshot[]): Promise<void> {
  let begin = (): void => {};
  const hasBegun = new Promise<void>((resolve) => (begin = resolve));
  let end = (): void => {};
  const mayEnd = new Promise<void>((resolve) => (end = resolve));
  const one = learn(first, {
    held: async () => {
      begin();
      await mayEnd;
    },
  });
  await hasBegun;
  const other = learn(second);
  await Promise.race([untilWaiting(db), other]);
  end();
  await Promise.all([one, other]);
}

const renewal = (fields: object = {}) =>
  shown(
    "order",
    sampleOrder({
      status: "failed",
      failure_code: "expired_card",
      subscription_id: "subscription-1",
      subscription_cycle: 2,
      attempt_count: 1,
      next_retry_at: at(86_400),
      ...fields,
    }),
  );
const canceled = shown(
  "subscription",
  sampleSubscription({ status: "canceled", canceled_at: at(600), updated_at: at(600) }),
);
const paid = shown("order", sampleOrder({ transactions: [sampleEntry()] }));
const sale = shown("transaction", sampleTransaction());
const disputedSale = shown("transaction", sampleTransaction({ status: "chargeback", updated_at: at(30) }));
const lostOrder = shown("order", sampleOrder({ status: "chargeback_accepted", updated_at: at(60) }));

test.each([
  ["a decline, then the cancellation", [renewal()], [canceled], []],
  ["the cancellation, then a decline", [canceled], [renewal()], []],
  ["a chargeback by its sale, then by its order", [disputedSale], [lostOrder], [paid, sale]],
  ["a chargeback by its order, then by its sale", [lostOrder], [disputedSale], [paid, sale]],
  ["a chargeback whose order is not known yet", [disputedSale], [lostOrder], []],
  ["… and the other way round", [lostOrder], [disputedSale], []],
])("two workers assess one subject at once: %s", async (_, first, second, before) => {
  await learn(before);
  await atOnce(first, second);
  const rows = await alertRows(db);
  expect(rows).toMatchObject([{ state: "resolved" }]);
  await emptyAll(db);
  await learn([...before, ...first, ...second]);
  expect(rows, "as by one worker").toEqual(await alertRows(db));
});

test("two workers that see a storm at once open one incident", async () => {
  const declines = (...ids: string[]) => ids.map((id) => renewal({ id, subscription_id: `subscription of ${id}` }));
  await atOnce(declines("order-1", "order-2"), declines("order-3", "order-4"));
  const incidents = await db("alerts.alerts").where("rule", "decline_storm");
  expect(incidents).toMatchObject([{ key: "storm:declines", occurrence: 1 }]);
  expect(await db("alerts.outbox")).toHaveLength(1);
});

test("a decline and a chargeback that only a transaction shows", async () => {
  const pending = { status: "pending", transactions: [] };
  const order = (id: string, fields: object) => shown("order", sampleOrder({ id, ...fields }));
  await learn([order("order-1", pending), order("order-2", {})]);
  const failed = { id: "sale-1", order_id: "order-1", status: "failed", failure_code: "lost_card" };
  const disputed = { id: "sale-2", order_id: "order-2", status: "chargeback" };
  await learn([failed, disputed].map((one) => shown("transaction", sampleTransaction(one))));
  expect(await unresolved(db)).toEqual(["chargeback:order-2 critical open", "decline:order-1 warning open"]);
});

test("what the first fill left untold is no news when another cycle is declined", async () => {
  const old = renewal({ id: "order-0", attempt_count: 4, next_retry_at: null });
  await learn([old], { foundBy: "import" });
  expect(await alertRows(db)).toEqual([]);
  const time = "2026-03-01T11:00:00.000Z";
  const next = { next_retry_at: "2026-03-04T11:00:00.000Z", created_at: time, updated_at: time };
  await learn([renewal({ id: "order-9", subscription_cycle: 20, ...next })]);
  expect(await unresolved(db)).toEqual(["dunning:subscription-1:20 warning open"]);
  expect(await messagesOf(db, "dunning:subscription-1:20")).toEqual(["trigger attempt:1"]);
});
