import { beforeEach, expect, test } from "vitest";
import { readChanges } from "../../src/core/mirror/changes/read-changes.ts";
import { createConsumer, moveConsumer, readConsumer } from "../../src/parts/delivery/consumers.ts";
import { keepFeed } from "../../src/core/mirror/changes/feed-partitions.ts";
import { createLog } from "../../src/platform/log.ts";
import { standingClock, sweep, unresolved } from "../alerts/sweep-stand.ts";
import { emptyAlerts, settingsOf, testAlertContext } from "../alerts/test-alert-context.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { storeChange } from "./stored-changes.ts";

const database = useTestDatabase();
beforeEach(async () => {
  await emptyAlerts(database.db);
  await database.db.raw("delete from feed.changes; delete from feed.consumers");
});

const log = createLog({ level: "silent", name: "test" });
/** Far less than the consumer is away. */
const keepDays = 1;

test("a consumer that stops for a week is told of, and finds every change of that week when it returns, in order", async () => {
  const { db } = database;
  const clock = standingClock("2026-11-02T06:00:00Z");
  // Some hours between sweeps are no gap here.
  const settings = settingsOf({ rules: { silence_worker: { afterMinutes: 1_440 } } });
  const alertContext = testAlertContext({ settings, clock, serviceClock: clock });
  const told: number[] = [];
  const read = new Map<string, number[]>([
    ["shop", []],
    ["other", []],
  ]);
  /** A day with two changes, at whose end a worker looks after the feed. */
  async function passDay(...running: string[]): Promise<{ dropped: number; alerts: string[] }> {
    for (const hours of [12, 12]) {
      told.push(await storeChange(db, { recordedAt: clock.now() }));
      for (const name of running) read.get(name)?.push(...(await readAll(name)));
      clock.advanceHours(hours);
      await sweep(db, alertContext);
    }
    const { dropped } = await keepFeed({ db, log }, { now: clock.now(), keepDays });
    const alerts = await unresolved(db);
    return {
      dropped: dropped.length,
      alerts: alerts.filter((alert) => alert.startsWith("feed-consumer:")),
    };
  }
  /** What a consumer does when it runs: a page after another, until it has read all. */
  async function readAll(name: string): Promise<number[]> {
    const seqs: number[] = [];
    for (let hasMore = true; hasMore;) {
      const { position: from = -1 } = (await readConsumer(db, name)) ?? {};
      const page = await readChanges(db, { after: from, limit: 5 });
      if (page.position > from) await moveConsumer(db, { name, from, to: page.position });
      seqs.push(...page.changes.map(({ seq }) => seq));
      ({ hasMore } = page);
    }
    return seqs;
  }

  for (const name of read.keys()) await createConsumer(db, name, "now");
  expect((await passDay("shop", "other")).alerts).toEqual([]);
  for (let day = 0; day < 7; day++) {
    expect(await passDay("other")).toEqual({
      dropped: 0,
      alerts: ["feed-consumer:shop error open"],
    });
  }
  expect((await passDay("shop", "other")).alerts).toEqual([]);
  expect(read.get("shop")).toEqual(told);
  // What was kept for it goes, once the numbers have gone on to another partition.
  let dropped = 0;
  for (let day = 0; day < 8 && dropped === 0; day++) {
    ({ dropped } = await passDay("shop", "other"));
  }
  expect(dropped).toBe(1);
});
