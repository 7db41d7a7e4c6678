import fc from "fast-check";
import type { Knex } from "knex";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { at, sampleEntry, sampleOrder } from "../mirror/samples.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { emptyAll } from "../worker/worker-stand.ts";
import { event } from "./sweep-stand.ts";
import { settingsOf, testAlertContext } from "./test-alert-context.ts";
import { alertRows, deliver, messagesOf, oneByOne } from "./timeline-stand.ts";
import type { Json } from "../sandbox/harness.ts";
import { rounds } from "../support/rounds.ts";

const database = useTestDatabase();
let db: Knex;
beforeAll(() => {
  ({ db } = database);
});
beforeEach(() => emptyAll(db));

const settings = settingsOf({ digests: { when: "off" } });
const alertContext = testAlertContext({ settings });

const hours = (n: number) => n * 3_600;

/** Alerts of a key, oldest first: their states, and when they were opened. */
const alertsOf = async (key: string) =>
  (await db("alerts.alerts").where({ key }).orderBy("occurrence").select("occurrence", "stage", "opened_at")).map(
    (row: { occurrence: number; stage: string; opened_at: Date }) =>
      `${row.occurrence} ${row.stage} ${(row.opened_at.getTime() - Date.parse(at(0))) / 3_600_000} h`,
  );

const inAnyOrder = (events: readonly Json[], numRuns: number) =>
  fc.assert(
    fc.asyncProperty(
      fc.shuffledSubarray([...events], { minLength: events.length }),
      fc.subarray([...events]),
      async (shuffled, again) => {
        await emptyAll(db);
        await deliver(db, alertContext, oneByOne(events));
        const inOrder = await alertRows(db);
        await emptyAll(db);
        await deliver(db, alertContext, oneByOne([...shuffled, ...again]));
        expect(await alertRows(db)).toEqual(inOrder);
      },
    ),
    { numRuns },
  );

describe("a chargeback", () => {
  const state = (status: string, hour: number) =>
    event(
      "order.updated",
      sampleOrder({
        status,
        updated_at: at(hours(hour)),
        transactions: [
          sampleEntry({
            status: status === "chargeback" ? "chargeback" : "succeeded",
            updated_at: at(hours(hour)),
          }),
        ],
      }),
    );
  const opened = state("chargeback", 1);
  const won = state("chargeback_dismissed", 2);
  const openedAgain = state("chargeback", 3);
  const lost = state("chargeback_accepted", 4);
  const key = "chargeback:order-1";

  test("that is opened again after it was won is told again, as an alert of its own with its own time", async () => {
    await deliver(db, alertContext, oneByOne([opened, won, openedAgain]));
    expect(await messagesOf(db, key)).toEqual(["trigger opened", "resolve dismissed", "trigger opened"]);
    expect(await alertsOf(key)).toEqual(["1 dismissed 1 h", "2 opened 3 h"]);
    const { message } = await db("alerts.outbox").orderBy("id", "desc").first("message");
    expect(message).toMatchObject({
      dedupKey: `${key}#2`,
      title: "Chargeback again 10.00 USD, order AB12CD34. Answer before the bank's deadline",
      facts: expect.arrayContaining([{ label: "Opened", value: "2025-03-01 15:00 UTC (2nd time)" }]),
    });
    await deliver(db, alertContext, oneByOne([lost]));
    expect((await messagesOf(db, key)).at(-1)).toBe("resolve accepted");
    expect(await alertsOf(key)).toEqual(["1 dismissed 1 h", "2 accepted 3 h"]);
  });

  test("that is won, lost or opened a second time tells each of them", async () => {
    const wonAgain = state("chargeback_dismissed", 4);
    const third = state("chargeback", 5);
    const lostAfter = state("chargeback_accepted", 6);
    const fourth = state("chargeback", 7);
    const lostAgain = state("chargeback_accepted", 8);
    await deliver(
      db,
      alertContext,
      oneByOne([opened, won, openedAgain, wonAgain, third, lostAfter, fourth, lostAgain]),
    );
    expect(await messagesOf(db, key)).toEqual([
      "trigger opened",
      "resolve dismissed",
      "trigger opened",
      "resolve dismissed",
      "trigger opened",
      "resolve accepted",
      "trigger opened",
      "resolve accepted",
    ]);
  });

  test("that left the order without a word and came again is told again", async () => {
    await deliver(db, alertContext, oneByOne([opened, state("succeeded", 2), openedAgain]));
    expect(await alertsOf(key)).toEqual(["1 dismissed 1 h", "2 opened 3 h"]);
  });

  test("that was told before this release is not told again, and its second opening is", async () => {
    await deliver(db, alertContext, oneByOne([opened, won]));
    // A release before knew the key alone: the chargeback that was opened again stayed one alert.
    await db("alerts.alerts").where({ key }).update({ state: "open", stage: "opened" });
    const sent = await messagesOf(db, key);
    await deliver(db, alertContext, oneByOne([openedAgain]));
    expect((await messagesOf(db, key)).slice(sent.length)).toEqual(["trigger opened"]);
    expect(await alertsOf(key)).toEqual(["1 dismissed 1 h", "2 opened 3 h"]);
  });

  test("has the same alerts, whatever the order in which its states arrive and however often", async () => {
    await inAnyOrder([opened, won, openedAgain, lost, state("chargeback", 5)], rounds(2, 20));
  });
});

describe.each([
  ["a one-time order", {}, "decline:order-1"],
  ["a renewal", { subscription_id: "subscription-1", subscription_cycle: 2 }, "dunning:subscription-1:2"],
] as const)("%s", (_what, fields, key) => {
  const sale = (nth: number, hour: number, status: string) =>
    sampleEntry({
      id: `sale-${nth}`,
      status,
      created_at: at(hours(hour)),
      updated_at: at(hours(hour)),
    });
  const state = (hour: number, ...sales: Json[]) =>
    event(
      "order.updated",
      sampleOrder({
        ...fields,
        status: sales.at(-1)?.["status"],
        failure_code: "insufficient_funds",
        updated_at: at(hours(hour) + 1),
        transactions: sales,
      }),
    );
  const first = sale(1, 1, "failed");
  const paid = sale(2, 2, "succeeded");
  const second = sale(3, 3, "failed");
  const life = [
    state(1, first),
    state(2, first, paid),
    state(3, first, paid, second),
    state(4, first, paid, second, sale(4, 4, "succeeded")),
  ];

  test("that was paid and fails again is told again, and that it is paid again", async () => {
    await deliver(db, alertContext, oneByOne(life));
    expect(await messagesOf(db, key)).toEqual([
      "trigger attempt:1",
      "resolve recovered",
      "trigger attempt:1",
      "resolve recovered",
    ]);
    expect(await alertsOf(key)).toEqual(["1 recovered 1 h", "2 recovered 3 h"]);
  });

  test("whose only charge turns from paid to failed is told, at the time of that", async () => {
    const turned = sampleEntry({
      status: "failed",
      created_at: at(hours(1)),
      updated_at: at(hours(4)),
    });
    await deliver(db, alertContext, oneByOne([state(1, sale(1, 1, "succeeded")), state(4, turned)]));
    expect(await messagesOf(db, key)).toEqual(["trigger attempt:1"]);
    const [alert] = await db("alerts.alerts").where({ key }).select("opened_at");
    expect(alert).toEqual({ opened_at: new Date(at(hours(4) + 1)) });
  });

  test("that fails again has the same alerts, whatever the order of arrival and however often", async () => {
    await inAnyOrder(life, rounds(2, 20));
  });
});
