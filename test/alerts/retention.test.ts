import { beforeEach, describe, expect, test } from "vitest";
import { pruneAlerts } from "../../src/parts/alerts/retention.ts";
import { clear, raise } from "../../src/parts/alerts/raise-conditions.ts";
import type { Condition } from "../../src/parts/alerts/timeline.ts";
import { maxValues, remember, reportUnknownValues } from "../../src/parts/alerts/rules/unknown-values.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { sendDue } from "./timeline-stand.ts";
import { emptyAlerts, testAlertContext } from "./test-alert-context.ts";
import { unresolved } from "./sweep-stand.ts";

const database = useTestDatabase();
const alertContext = testAlertContext();
const { settings } = alertContext;
const dayMs = 86_400_000;

beforeEach(() => emptyAlerts(database.db));

const daysLater = (days: number): Date => new Date(Date.now() + days * dayMs);
const pruneAfter = (days: number) =>
  pruneAlerts(database.db, { now: daysLater(days), serviceNow: daysLater(days), settings });

const condition = (key: string, rule: Condition["rule"] = "silence_events"): Condition => ({
  key,
  rule,
  severity: "critical",
  title: "It is so",
  advice: "Do something.",
  facts: [],
  at: new Date(),
});
const begin = (...conditions: Condition[]) =>
  database.db.transaction((trx) => raise(trx, alertContext, conditions, "sweep"));
const end = (key: string) =>
  database.db.transaction((trx) => {
    const over = { title: "It is over", advice: "Do nothing." };
    return clear(trx, alertContext, [{ key, end: over, at: new Date() }], "sweep");
  });
const messages = () => database.db("alerts.outbox").orderBy("id").pluck<{ title: string; action: string }[]>("message");

describe("a message", () => {
  test("goes with its time once its alert is over", async () => {
    await begin(condition("silence:events"));
    await sendDue(database.db);
    await end("silence:events");
    await sendDue(database.db);
    await pruneAfter(89);
    expect(await messages()).toHaveLength(2);
    await pruneAfter(91);
    expect(await messages()).toEqual([]);
  });

  test("loses its text while its alert is open, and the end is still told where it was sent", async () => {
    await begin(condition("silence:events"));
    await sendDue(database.db);
    await pruneAfter(91);
    const [left] = await messages();
    expect(left).toMatchObject({ title: expect.stringContaining("was removed"), facts: [] });
    await end("silence:events");
    expect((await messages()).map(({ action }) => action)).toEqual(["trigger", "resolve"]);
  });

  test("that was given up can be sent again for a year", async () => {
    await begin(condition("silence:events"));
    await database.db("alerts.outbox").update({ state: "failed" });
    await end("silence:events");
    await pruneAfter(364);
    expect(await messages()).toMatchObject([{ title: "It is so" }]);
    await pruneAfter(366);
    expect(await messages()).toEqual([]);
  });
});

describe("an alert", () => {
  test("that ended goes with its history, but for the last of a condition, whose number goes on", async () => {
    for (const key of ["silence:events", "silence:events", "dead:event-1"]) {
      await begin(condition(key));
      await end(key);
    }
    await pruneAfter(399);
    expect(await database.db("alerts.alerts")).toHaveLength(3);
    await pruneAfter(401);
    const left = await database.db("alerts.alerts").select("key", "occurrence");
    expect(left).toEqual([{ key: "silence:events", occurrence: 2 }]);
    expect(await database.db("alerts.history")).toHaveLength(2);
    await begin(condition("silence:events"));
    expect(await database.db("alerts.alerts").max("occurrence as n")).toEqual([{ n: 3 }]);
  });

  test("on a chargeback or an invariant stays for ten years", async () => {
    for (const [key, rule] of [
      ["chargeback:order-1", "chargeback"],
      ["identity:one_sale", "identity_broken"],
      ["identity:one_sale", "identity_broken"],
    ] as const) {
      await begin(condition(key, rule));
      await end(key);
    }
    await pruneAfter(3_650);
    expect(await database.db("alerts.alerts")).toHaveLength(3);
    await pruneAfter(3_660);
    expect(await database.db("alerts.alerts").select("key", "occurrence")).toEqual([
      { key: "identity:one_sale", occurrence: 2 },
    ]);
  });

  test("that still holds stays, and one that needs no end goes when nothing happened to it for long", async () => {
    await begin(
      condition("dead:event-1", "event_dead"),
      condition("silence:events"),
      condition("decline:order-1", "decline"),
      condition("new-values-end:order.status", "event_unknown"),
      condition("storm:late-declines", "decline"),
    );
    await pruneAfter(399);
    expect(await unresolved(database.db)).toHaveLength(5);
    await pruneAfter(401);
    expect(await unresolved(database.db)).toEqual([
      "dead:event-1 critical open",
      "silence:events critical open",
      "storm:late-declines critical open",
    ]);
  });
});

test("who stood in which list is forgotten a month after the end of the alert and of the storm", async () => {
  const { db } = database;
  await begin(condition("storm:dead"), condition("dead:event-1"), condition("dead:event-2"));
  const idOf = async (key: string) => (await db("alerts.alerts").where({ key }).first("id")).id;
  const [storm_id, over, open] = [await idOf("storm:dead"), await idOf("dead:event-1"), await idOf("dead:event-2")];
  for (const alert_id of [over, open]) {
    const item = { channel: "team", alert_id, stage: "opened", told_at: new Date() };
    await db("alerts.digest_items").insert(item);
    await db("alerts.storm_items").insert({ ...item, storm_id, told_how: "at_end" });
  }
  const left = async () => [
    await db("alerts.digest_items").where("stage", "opened").orderBy("alert_id").pluck("alert_id"),
    (await db("alerts.storm_items").orderBy("alert_id").pluck("alert_id")).length,
  ];
  await end("dead:event-1");
  await pruneAfter(29);
  expect(await left()).toEqual([[over, open], 2]);
  await pruneAfter(31);
  expect(await left(), "the storm counts at its end what it listed").toEqual([[open], 2]);
  await end("storm:dead");
  await pruneAfter(31);
  expect(await left()).toEqual([[open], 1]);
});

test("of an endless kind of values so many are known, and one alert says that there are more", async () => {
  const { db } = database;
  await db.raw(
    "insert into alerts.seen_values (kind, value) select 'order.status', 'v' || n from generate_series(2, ?) n",
    [maxValues],
  );
  const report = (...values: string[]) =>
    db.transaction((trx) =>
      reportUnknownValues(trx, alertContext, new Map([["order.status", new Set(values)]]), "event"),
    );
  await report("a", "b", "v2");
  await report("c", "d");
  expect(await db("alerts.seen_values").count("* as n")).toEqual([{ n: String(maxValues) }]);
  expect(await unresolved(db)).toEqual([
    "new-value:order.status:a warning open",
    "new-values-end:order.status warning open",
  ]);
  const { fresh } = await remember(db, [{ kind: "order.currency", value: "xqq" }]);
  expect(fresh, "another kind has room").toHaveLength(1);
});
