import { beforeEach, expect, test } from "vitest";
import { scanInbox } from "../../../src/parts/alerts/rules/events.ts";
import { firstNumberOfPrevious, keepPartitions } from "../../../src/core/inbox/partitions.ts";
import { createLog } from "../../../src/platform/log.ts";
import { emptyInbox, storeRow } from "../../inbox/stored-events.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { unresolved } from "../sweep-stand.ts";
import { emptyAlerts, testAlertContext } from "../test-alert-context.ts";

const database = useTestDatabase();
const log = createLog({ level: "silent", name: "test" });
const dayMs = 86_400_000;

beforeEach(async () => {
  await emptyAlerts(database.db);
  await emptyInbox(database.db);
});

const scan = () => database.db.transaction((trx) => scanInbox(trx, testAlertContext(), { firstNumberOfPrevious }));

/** The numbers go on to the next partition, as they do every week. */
async function jump(): Promise<void> {
  const keep = (inDays: number) =>
    keepPartitions({ db: database.db, log }, { now: new Date(Date.now() + inDays * dayMs), keepDays: 400 });
  await keep(0);
  await keep(8);
}

const received = { receivedAgoSeconds: 60 };

test("an id that arrives again with other bytes is told of, also once the numbers have jumped", async () => {
  const first = await storeRow(database.db, {
    ...received,
    eventId: "evt_twice",
    raw: Buffer.from("1"),
  });
  await jump();
  // The next scan begins beyond the jump.
  await storeRow(database.db, received);
  await scan();
  const second = await storeRow(database.db, {
    ...received,
    eventId: "evt_twice",
    raw: Buffer.from("2"),
  });
  expect(second - first).toBeGreaterThan(2_000_000);
  await scan();
  expect(await unresolved(database.db)).toEqual(["event-id:evt_twice warning open"]);
});

test("a scan across a jump of the numbers knows that nothing is left", async () => {
  await storeRow(database.db, received);
  await jump();
  await storeRow(database.db, received);
  expect(await scan()).toEqual({ more: false });
});
