import fc from "fast-check";
import type { Knex } from "knex";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type ReconcileStand, createReconcileStand } from "../reconcile/reconcile-stand.ts";
import {
  type Json,
  type TestSandbox,
  aCustomer,
  aSubscription,
  anOrder,
  startTestSandbox,
} from "../sandbox/harness.ts";
import { emptyAll } from "../worker/worker-stand.ts";
import {
  advance,
  alertRows,
  deliver,
  eventsSoFar,
  isPartOf,
  lifeOf,
  messagesOf,
  oneByOne,
  sendDue,
} from "./timeline-stand.ts";
import { looksBack, standingClock, sweep } from "./sweep-stand.ts";
import { settingsOf, testAlertContext } from "./test-alert-context.ts";
import { emptyTables } from "../support/empty-tables.ts";

let stand: ReconcileStand;
let db: Knex;
let sandbox: TestSandbox;
let stories: Timeline[];
let ordered: Ordered;

/** Every step is told by itself: neither a digest nor an incident takes its place. */
const settings = settingsOf({
  digests: { when: "off" },
  rules: { decline_storm: { enabled: false } },
});
const alertContext = testAlertContext({ settings });

interface Timeline {
  name: string;
  key: string;
  events: Json[];
  /** What is sent when everything arrives at once and in order. */
  told: string[];
  state: "open" | "resolved";
}

beforeAll(async () => {
  sandbox = await startTestSandbox("stories");
  stand = await createReconcileStand(sandbox.url, { settings });
  ({ db } = stand.database);
  stories = await playAll(sandbox);
  ordered = await tellInOrder();
});
afterAll(async () => {
  await stand.close();
  await sandbox.close();
});
beforeEach(async () => {
  await emptyAll(db);
  await emptyTables(db, ["reconcile.runs"]);
});

/** Everything in one sandbox, side by side, so that the clock is moved once. */
async function playAll(box: TestSandbox): Promise<Timeline[]> {
  await box.control("POST", "/clock", { now: "2026-03-01T09:00:00.000Z" });
  const subscribe = async (token: string) => aSubscription(box, await aCustomer(box, token));
  const once = await subscribe("card_renewal_declined_once");
  const twice = await subscribe("card_renewal_declined_twice");
  const lost = await subscribe("card_renewal_declined");
  const canceled = await subscribe("card_renewal_declined");
  const first = await subscribe("card_visa_declined");
  const replacers: Json[] = [];
  const replaced: Json[] = [];
  for (let n = 0; n < 3; n++) {
    replacers.push(await aCustomer(box, "card_renewal_declined"));
    replaced.push(await aSubscription(box, replacers[n]));
  }
  const fraud = await subscribe("card_renewal_lost");
  const shopper = await anOrder(box, await aCustomer(box, "card_insufficient_funds"));
  const retried = await anOrder(box, await aCustomer(box, "card_declined_once"));
  await box.ok("POST", `/v1/orders/${retried.id}/retry`, {});
  const won = await anOrder(box, await aCustomer(box));
  const given = await anOrder(box, await aCustomer(box));
  await advance(box, 30.9);
  await box.control("POST", `/orders/${won.id}/chargeback`);
  await box.control("POST", `/orders/${given.id}/chargeback`);
  await advance(box, 0.2);
  await advance(box, 2);
  await box.ok("DELETE", `/v1/subscriptions/${canceled.id}`);
  for (const [n, days] of [1.5, 2, 3].entries()) {
    await replaceCard(box, replacers[n]);
    await advance(box, days);
  }
  await box.control("POST", `/orders/${won.id}/chargeback_dismiss`);
  await box.control("POST", `/orders/${given.id}/chargeback_accept`);
  const events = await eventsSoFar(box);
  const of = (...ids: string[]) =>
    events.filter(({ data }) => {
      const { id, subscription_id: subscription } = data.object;
      return ids.includes(id) || ids.includes(subscription);
    });
  const timeline = (name: string, key: string, ids: string[], told: string[], state: Timeline["state"]): Timeline => ({
    name,
    key,
    events: of(...ids),
    told,
    state,
  });
  const attempts = (n: number) => Array.from({ length: n }, (_, at) => `trigger attempt:${at + 1}`);
  return [
    timeline(
      "recovered at the first retry",
      `dunning:${once.id}:2`,
      [once.id],
      [...attempts(1), "resolve recovered"],
      "resolved",
    ),
    timeline(
      "recovered at the second retry",
      `dunning:${twice.id}:2`,
      [twice.id],
      [...attempts(2), "resolve recovered"],
      "resolved",
    ),
    timeline("lost", `dunning:${lost.id}:2`, [lost.id], [...attempts(3), "trigger final"], "open"),
    timeline("lost to fraud", `dunning:${fraud.id}:2`, [fraud.id], [...attempts(1), "trigger final"], "open"),
    timeline(
      "canceled in between",
      `dunning:${canceled.id}:2`,
      [canceled.id],
      [...attempts(2), "resolve canceled"],
      "resolved",
    ),
    timeline("first charge declined", `dunning:${first.id}:first`, [first.id], attempts(1), "open"),
    ...replaced.map(({ id }, n) =>
      timeline(
        `card replaced before retry ${n + 2}`,
        `dunning:${id}:2`,
        [id],
        // From the third on the customer is to be written to, which is asked once.
        [...attempts(Math.min(n + 2, 3)), "resolve recovered"],
        "resolved",
      ),
    ),
    timeline("one-time", `decline:${shopper.id}`, [shopper.id], attempts(1), "open"),
    timeline(
      "one-time, tried again",
      `decline:${retried.id}`,
      [retried.id],
      [...attempts(1), "resolve recovered"],
      "resolved",
    ),
    timeline("chargeback won", `chargeback:${won.id}`, [won.id], ["trigger opened", "resolve dismissed"], "resolved"),
    timeline(
      "chargeback lost",
      `chargeback:${given.id}`,
      [given.id],
      ["trigger opened", "resolve accepted"],
      "resolved",
    ),
  ];
}

const stagesOf = (changes: readonly string[] = []): string[] => changes.map((each) => each.split(" ")[1] ?? "");

interface Ordered {
  rows: Json[];
  /** By key. */
  lives: Map<string, string[]>;
  messages: Map<string, string[]>;
  fetches: Json[];
}

/** Everything delivered one by one and in order, each message sent at once: what all else is held against. */
async function tellInOrder(): Promise<Ordered> {
  for (const { events } of stories) await deliver(db, alertContext, oneByOne(events));
  const told: Ordered = {
    rows: await alertRows(db),
    lives: new Map(),
    messages: new Map(),
    fetches: await db("inbox.fetches"),
  };
  for (const { key } of stories) {
    told.lives.set(key, await lifeOf(db, key));
    told.messages.set(key, await messagesOf(db, key));
  }
  return told;
}

async function replaceCard(box: TestSandbox, customer: Json): Promise<void> {
  const methods = `/v1/customers/${customer.id}/payment_methods`;
  const card = await box.ok("POST", methods, { billing_id: "card_visa" });
  await box.ok("DELETE", `${methods}/${customer.default_payment_method_id}`, {
    replacement_payment_method_id: card.id,
  });
}

describe("a story that arrives in order", () => {
  test("is told step by step, and ends as the order does", () => {
    for (const { name, key, told, state } of stories) {
      expect(ordered.messages.get(key), name).toEqual(told);
      const row = ordered.rows.find((each) => each.key === key);
      expect(row, name).toMatchObject({ state, occurrence: 1 });
      const life = stagesOf(ordered.lives.get(key));
      expect(isPartOf(stagesOf(told), life), `${name}: ${life.join(", ")}`).toBe(true);
    }
    const ofAlerts = ordered.fetches.filter(({ reason }) => reason === "alert");
    expect(ofAlerts).toEqual([]);
  });
});

describe("a story that arrives in any order, twice, in any batches", () => {
  test("ends with the same rows, and what is sent is a part of the ordered story", async () => {
    const all = stories.flatMap(({ events }) => events);
    const arrivals = fc.tuple(
      fc.shuffledSubarray(
        Array.from({ length: all.length * 2 }, (_, n) => n),
        { minLength: all.length * 2 },
      ),
      fc.integer({ min: 3, max: 40 }),
    );
    await fc.assert(
      fc.asyncProperty(arrivals, async ([order, size]) => {
        await emptyAll(db);
        const events = order.flatMap((n) => all[n % all.length]!);
        const batches = Array.from({ length: Math.ceil(events.length / size) }, (_, n) =>
          events.slice(n * size, (n + 1) * size),
        );
        await deliver(db, alertContext, batches);
        expect(await alertRows(db)).toEqual(ordered.rows);
        for (const { name, key } of stories) {
          const sent = stagesOf(await messagesOf(db, key));
          const all = stagesOf(ordered.lives.get(key));
          expect(isPartOf(sent, all), `${name}: ${sent.join(", ")}`).toBe(true);
          const life = (await lifeOf(db, key)).toSorted();
          expect(life, name).toEqual(ordered.lives.get(key)?.toSorted());
        }
      }),
      { numRuns: 4, endOnFailure: true },
    );
  });
});

test("the owner hears of the last retry two days before it, by the service's own schedule", async () => {
  const { events, key } = stories.find(({ name }) => name === "lost")!;
  const failures = events.filter(({ type }) => type === "order.failed");
  const third = failures[2]!;
  const clock = standingClock(third.data.object.next_retry_at);
  const late = testAlertContext({ settings, serviceClock: clock });
  await deliver(db, late, oneByOne(events.slice(0, events.indexOf(third) + 1)));
  for (const hours of [-49, 2]) {
    clock.advanceHours(hours);
    await sweep(db, late);
  }
  expect((await messagesOf(db, key)).slice(-2)).toEqual(["trigger attempt:3", "trigger last-retry:3"]);
});

test("nothing that the service shows is a novelty", async () => {
  await sweep(db, alertContext);
  await deliver(db, alertContext, [stories.flatMap(({ events }) => events)]);
  await stand.run({ kind: "full" });
  await looksBack(db);
  await sweep(db, alertContext);
  expect(await db("alerts.alerts").where("rule", "event_unknown").pluck("key")).toEqual([]);
});

describe("a story of which some is found by reconciliation only", () => {
  test.each([2, 3])("ends as if everything had come, though one event of %i was lost", async (n) => {
    for (const { events } of stories) {
      // When a chargeback opened, no list shows afterwards.
      const kept = events.filter(({ type }, at) => at % n !== n - 1 || type === "order.chargeback");
      await deliver(db, alertContext, [kept.slice(0, 2), ...oneByOne(kept.slice(2))]);
    }
    await stand.run();
    await sendDue(db);
    const own = (await alertRows(db)).filter(({ key }) => !key.startsWith("drift:"));
    expect(own).toEqual(ordered.rows);
    for (const { name, key } of stories) {
      const sent = stagesOf(await messagesOf(db, key));
      const life = stagesOf(ordered.lives.get(key));
      expect(isPartOf(sent, life), `${name}: ${sent.join(", ")}`).toBe(true);
    }
    const drift = () => db("alerts.alerts").where("rule", "reconcile_drift");
    expect(await drift()).toMatchObject([{ severity: "warning", state: "open", found_by: "reconciliation" }]);
    await stand.run();
    expect(await drift()).toMatchObject([{ state: "resolved" }]);
  });
});

describe("a first fill", () => {
  test("tells of what still goes on, and of nothing that is long over", async () => {
    await stand.run({ kind: "import" });
    const rows = await db("alerts.alerts").orderBy("key").select("key", "found_by", "state");
    const old = stories.filter(({ state }) => state === "resolved").map(({ key }) => key);
    expect(rows.filter(({ key }: { key: string }) => old.includes(key))).toEqual([]);
    const lost = stories.filter(({ name }) => name.startsWith("lost")).map(({ key }) => key);
    const found = rows.map(({ key }: { key: string }) => key);
    expect(found.toSorted()).toEqual(lost.toSorted());
  });
});
