import type { Knex } from "knex";
import type { AlertMessage } from "../../../src/parts/alerts/message.ts";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { assess } from "../../../src/parts/alerts/assess.ts";
import type { FoundBy } from "../../../src/parts/alerts/alert-context.ts";
import { applySnapshots } from "../../../src/core/mirror/write/apply.ts";
import { applyBatch } from "../../../src/core/worker/apply-batch.ts";
import { at, sampleOrder, shown } from "../../mirror/samples.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { applyDeps, emptyAll } from "../../worker/worker-stand.ts";
import { messagesOf, storeBodies } from "../timeline-stand.ts";
import { standingClock, sweep } from "../sweep-stand.ts";
import { testAlertContext, toldTo } from "../test-alert-context.ts";

const database = useTestDatabase();
let db: Knex;
beforeAll(() => {
  ({ db } = database);
});
beforeEach(() => emptyAll(db));

const clock = standingClock("2025-03-01T13:00:00.000Z");
const alertContext = testAlertContext({ clock, serviceClock: clock });

async function learn(orders: object[], foundBy: FoundBy = "event"): Promise<void> {
  await db.transaction(async (trx) => {
    const observations = orders.map((order) => shown("order", sampleOrder({ ...order })));
    const { written } = await applySnapshots(trx, observations);
    await assess(trx, alertContext, written, foundBy);
  });
}

const many = <T>(count: number, make: (n: number) => T): T[] => Array.from({ length: count }, (_, n) => make(n));

const renewal = (n: number, fields: object = {}) => ({
  id: `order-${n}`,
  status: "failed",
  failure_code: "expired_card",
  subscription_id: `subscription-${n}`,
  subscription_cycle: 2,
  attempt_count: 1,
  next_retry_at: at(86_400),
  ...fields,
});

/** Titles of the messages that stand for a crowd. */
const told = async (): Promise<string[]> => {
  const messages = await db("alerts.outbox as o")
    .join("alerts.alerts as a", "a.id", "o.alert_id")
    .whereRaw("starts_with(a.key, 'storm:')")
    .where("o.is_list", false)
    .orderBy("o.id")
    .pluck<{ title: string }[]>("o.message");
  return messages.map(({ title }) => title);
};

test("a first fill with hundreds of open chargebacks", async () => {
  await learn(
    many(300, (n) => ({ id: `order-${n}`, status: "chargeback" })),
    "import",
  );
  expect(await told()).toEqual(["300 chargebacks in 10 min"]);
  expect(await db("alerts.alerts").where("rule", "chargeback")).toHaveLength(301);
  expect(await db("alerts.outbox"), "twenty by themselves").toHaveLength(21);
  await sweep(db, alertContext);
  const lists = await db("alerts.outbox").where("is_list", true).pluck<{ items: unknown[] }[]>("message");
  expect(
    lists.flatMap(({ items }) => items),
    "and the others in lists",
  ).toHaveLength(280);
});

test("a field that holds another value each time", async () => {
  await learn(many(300, (n) => ({ id: `order-${n}`, status: `status_${n}` })));
  expect(await told()).toEqual(["300 unknown values in 10 min"]);
});

test("types of events without an end: all are known afterwards", async () => {
  await db.raw(
    `insert into inbox.receipts (event_id, raw_sha256, type, received_at, raw, secret_id)
     select 'evt_' || n, sha256(n::text::bytea), 'thing.t' || n, now() - interval '20 seconds', '{}'::bytea, 'env-1'
     from generate_series(1, 2000) n`,
  );
  await sweep(db, alertContext);
  expect(await told()).toEqual(["2000 unknown values in 10 min"]);
  expect(await db("alerts.seen_values").where("kind", "event.type")).toHaveLength(2_000);
});

test("a batch of events that all die", async () => {
  const bodies = many(100, (n) => {
    const object = { ...sampleOrder({ id: `order-${n}` }), total: "a lot" };
    return JSON.stringify({ id: `evt-${n}`, type: "order.created", data: { object } });
  });
  await applyBatch({ ...applyDeps(db), ...toldTo(alertContext) }, await storeBodies(db, bodies));
  expect(await told()).toEqual(["100 events could not be applied in 10 min"]);
});

test("the last retries of many renewals are one list of the day", async () => {
  await learn(many(100, (n) => renewal(n, { attempt_count: 3 })));
  await sweep(db, alertContext);
  await sweep(db, alertContext);
  expect(await told()).toEqual(["100 declines in 10 min, far above the usual rate"]);
  const tomorrow = standingClock(new Date(Date.now() + 86_400_000).toISOString());
  await sweep(db, testAlertContext({ clock: tomorrow, serviceClock: clock }));
  const lists = await db("alerts.outbox").whereNull("alert_id").orderBy("id").pluck("message");
  expect(lists).toMatchObject([
    { title: expect.stringMatching(/^\d+ before the last retry \(\d+\.00 USD\) \(1 of 2\)$/) },
    { title: expect.stringContaining("(2 of 2)") },
  ]);
  const items = (lists as AlertMessage[]).flatMap((list) => list.items ?? []);
  expect(new Set(items.map(({ alertId }) => alertId)).size).toBe(100);
});

test("a rate about the limit is one incident, until it falls to half", async () => {
  const round = async (count: number, from: number) => {
    await db.raw("update alerts.history set recorded_at = recorded_at - interval '11 minutes'");
    await learn(many(count, (n) => renewal(from + n)));
    await sweep(db, alertContext);
  };
  for (const [n, count] of [30, 19, 23, 11].entries()) await round(count, n * 100);
  expect(await messagesOf(db, "storm:declines")).toEqual(["trigger opened"]);
  await round(10, 900);
  const ended = await messagesOf(db, "storm:declines");
  expect(ended.filter((each) => !each.startsWith("trigger list:"))).toEqual(["trigger opened", "resolve resolved"]);
});
