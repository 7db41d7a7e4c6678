import { beforeEach, expect, test } from "vitest";
import { feedConsumerBehind } from "../../../src/parts/alerts/rules/feed-consumers.ts";
import { createConsumer, moveConsumer, removeConsumer } from "../../../src/parts/delivery/consumers.ts";
import { contextOf } from "../../../src/parts/alerts/run-watch.ts";
import { storeChange } from "../../feed/stored-changes.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { standingClock, sweep, unresolved } from "../sweep-stand.ts";
import { emptyAlerts, settingsOf, testAlertContext } from "../test-alert-context.ts";

const database = useTestDatabase();
beforeEach(async () => {
  await emptyAlerts(database.db);
  await database.db.raw("delete from feed.changes; delete from feed.consumers");
});

/** An hour between sweeps is no gap here. */
const settings = settingsOf({ rules: { silence_worker: { afterMinutes: 120 } } });
const open = "feed-consumer:receipts error open";

function watching() {
  const clock = standingClock("2026-11-01T12:00:00Z");
  const alertContext = testAlertContext({ settings, clock, serviceClock: clock });
  const sweepAfter = async (minutes: number): Promise<string[]> => {
    clock.advanceHours(minutes / 60);
    await sweep(database.db, alertContext);
    const alerts = await unresolved(database.db);
    return alerts.filter((alert) => alert.startsWith("feed-consumer:"));
  };
  return { clock, sweepAfter };
}

test("a consumer that has not read a change for more than an hour is told of, until it has", async () => {
  const { db } = database;
  const { clock, sweepAfter } = watching();
  await sweepAfter(0);
  const { consumer } = await createConsumer(db, "receipts", "now");
  await createConsumer(db, "other", "now");
  const seq = await storeChange(db, { recordedAt: clock.now() });
  await moveConsumer(db, { name: "other", from: consumer.position, to: seq });
  expect(await sweepAfter(60)).toEqual([]);
  expect(await sweepAfter(1)).toEqual([open]);
  await moveConsumer(db, { name: "receipts", from: consumer.position, to: seq });
  expect(await sweepAfter(1)).toEqual([]);
});

test("a consumer that is removed is told of no more", async () => {
  const { db } = database;
  const { clock, sweepAfter } = watching();
  await sweepAfter(0);
  await createConsumer(db, "receipts", "now");
  await storeChange(db, { recordedAt: clock.now() });
  expect(await sweepAfter(61)).toEqual([open]);
  await removeConsumer(db, "receipts");
  expect(await sweepAfter(1)).toEqual([]);
});

test("a consumer that has read all is never behind, however long nothing changes", async () => {
  const { db } = database;
  const { clock, sweepAfter } = watching();
  await storeChange(db, { recordedAt: clock.now() });
  await createConsumer(db, "receipts", "now");
  await sweepAfter(0);
  expect(await sweepAfter(110)).toEqual([]);
});

test("after a downtime of everything, a consumer has ten minutes to catch up", async () => {
  const { db } = database;
  const { clock, sweepAfter } = watching();
  await createConsumer(db, "receipts", "now");
  await storeChange(db, { recordedAt: clock.now() });
  clock.advanceHours(5);
  expect(await sweepAfter(0)).toEqual([]);
  expect(await sweepAfter(9)).toEqual([]);
  expect(await sweepAfter(2)).toEqual([open]);
});

test("the command that removes it is right for a shell, whatever the name", () => {
  const adviceFor = (name: string): string => {
    const clock = standingClock("2026-11-01T12:00:00Z");
    const since = new Date("2026-11-01T09:00:00Z");
    const behind = { name, position: 1, movedAt: since, createdAt: since, unreadSince: since };
    const [begun] = feedConsumerBehind.begins([behind], contextOf(testAlertContext({ clock }), feedConsumerBehind));
    return begun?.advice ?? "";
  };
  expect(adviceFor("shop.receipts")).toContain("consumers remove shop.receipts");
  expect(adviceFor("it's $HOME")).toContain("consumers remove 'it'\\''s $HOME'");
});
