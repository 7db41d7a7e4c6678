import { beforeEach, expect, test } from "vitest";
import { keepFeed } from "../../../src/core/mirror/changes/feed-partitions.ts";
import { keepPartitions } from "../../../src/core/inbox/partitions.ts";
import { createLog } from "../../../src/platform/log.ts";
import { openInbox } from "../../inbox/inbox-stand.ts";
import { emptyInbox, verifiedEvent } from "../../inbox/stored-events.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { standingClock, sweep, unresolved } from "../sweep-stand.ts";
import { emptyAlerts, settingsOf, testAlertContext } from "../test-alert-context.ts";

const database = useTestDatabase();
const log = createLog({ level: "silent", name: "test" });
const open = "inbox:partitions error open";

beforeEach(async () => {
  await emptyAlerts(database.db);
  await emptyInbox(database.db);
});

/** Two hours between sweeps are no gap here. */
const settings = settingsOf({ rules: { silence_worker: { afterMinutes: 120 } } });

function watching(start: Date) {
  const clock = standingClock(start.toISOString());
  const alertContext = testAlertContext({ settings, clock, serviceClock: clock });
  const sweepAfter = async (minutes: number): Promise<void> => {
    clock.advanceHours(minutes / 60);
    await sweep(database.db, alertContext);
  };
  return { clock, sweepAfter };
}

const partitionAlerts = async (): Promise<string[]> =>
  (await unresolved(database.db)).filter((alert) => alert.includes(":partitions"));

test("partitions that a worker does not make for an hour are told of, until it has made them", async () => {
  const { clock, sweepAfter } = watching(new Date(Date.now() + 50 * 86_400_000));
  await sweepAfter(0);
  await sweepAfter(60);
  expect(await partitionAlerts(), "it may still make them").toEqual([]);
  await sweepAfter(15);
  expect(await partitionAlerts()).toEqual([open]);
  await keepPartitions({ db: database.db, log }, { now: clock.now(), keepDays: 400 });
  await sweepAfter(1);
  expect(await partitionAlerts()).toEqual([]);
});

test("events outside of all partitions are told of, until a worker has made one of them", async () => {
  const { clock, sweepAfter } = watching(new Date());
  const keep = () => keepPartitions({ db: database.db, log }, { now: clock.now(), keepDays: 400 });
  await keep();
  await database.db.raw("select setval('inbox.event_numbers', 900000000000)");
  const inbox = openInbox(database.url);
  await inbox.appender.append(verifiedEvent());
  await inbox.close();
  await sweepAfter(0);
  await sweepAfter(75);
  expect(await partitionAlerts()).toEqual([open]);
  // The first makes them, the second goes on to them.
  await keep();
  await keep();
  await sweepAfter(1);
  expect(await partitionAlerts()).toEqual([]);
});

test("a feed without partitions ahead is told of, until a worker has made them", async () => {
  const { clock, sweepAfter } = watching(new Date());
  const { db } = database;
  const numbers = { now: clock.now(), keepDays: 400 };
  await keepPartitions({ db, log }, numbers);
  await db.raw("select setval('feed.change_numbers', 29000000)");
  await sweepAfter(0);
  await sweepAfter(75);
  expect(await partitionAlerts()).toEqual(["feed:partitions error open"]);
  await keepFeed({ db, log }, numbers);
  await sweepAfter(1);
  expect(await partitionAlerts()).toEqual([]);
});
