import type { Knex } from "knex";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { canonicalTimestamp } from "../../src/core/contract/timestamp.ts";
import type { Snapshot } from "../../src/core/mirror/snapshot.ts";
import { rereadMisdated } from "../../src/core/worker/reread-misdated.ts";
import { apply, at, sampleOrder, seen } from "../mirror/samples.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { emptyAll } from "../worker/worker-stand.ts";
import { event, sweep } from "./sweep-stand.ts";
import { settingsOf, testAlertContext } from "./test-alert-context.ts";
import { deliver, messagesOf } from "./timeline-stand.ts";
import { emptyTables } from "../support/empty-tables.ts";

const database = useTestDatabase();
let db: Knex;
beforeAll(() => {
  ({ db } = database);
});
beforeEach(async () => {
  await emptyAll(db);
  await emptyTables(db, ["mirror.unbelieved", "mirror.misdated"]);
});

const alertContext = testAlertContext({ settings: settingsOf({ digests: { when: "off" } }) });

const order = (id: string, updatedAt: string) => sampleOrder({ id, updated_at: updatedAt, transactions: [] });
const misdated = (id: string) => event("order.updated", order(id, "9999-01-01T00:00:00.000Z"));
/** What a read of the service shows later, when its clock is right again. */
const readRight = (id: string): Snapshot => ({
  ...seen("order", order(id, at(60)), 120),
  receivedAt: canonicalTimestamp(at(120)),
});
const ids = Array.from({ length: 40 }, (_, n) => `order-${n}`);
const alerts = () => db("alerts.alerts").where("rule", "event_future").orderBy("id").select("key", "state", "facts");

test("objects that one wrong clock dates in the future are one alert with count and money, which ends for all", async () => {
  await deliver(db, alertContext, [ids.map(misdated)]);
  await deliver(db, alertContext, [ids.map(misdated)]);
  expect(await alerts()).toMatchObject([{ key: "misdated", state: "open", facts: { objects: 40 } }]);
  expect(await messagesOf(db, "misdated")).toEqual(["trigger opened"]);
  const { message } = await db("alerts.outbox").first("message");
  expect(message).toMatchObject({
    facts: expect.arrayContaining([
      { label: "Objects", value: "40" },
      { label: "They show", value: "400.00 USD" },
    ]),
  });
  for (const id of ids.slice(1)) await apply(db, readRight(id));
  await sweep(db, alertContext);
  expect(await alerts()).toMatchObject([{ state: "open", facts: { objects: 1 } }]);
  await apply(db, readRight("order-0"));
  await sweep(db, alertContext);
  expect(await alerts()).toMatchObject([{ state: "resolved" }]);
  expect(await db("mirror.misdated")).toEqual([]);
});

test("an object that is dated in the future again is waited for again", async () => {
  await deliver(db, alertContext, [[misdated("order-1")]]);
  await apply(db, readRight("order-1"));
  await sweep(db, alertContext);
  await deliver(db, alertContext, [[misdated("order-1")]]);
  expect((await alerts()).map(({ state }: { state: string }) => state)).toEqual(["resolved", "open"]);
});

test("what waits is read again after an hour, and not before", async () => {
  await deliver(db, alertContext, [[misdated("order-1")]]);
  await db("inbox.fetches").delete();
  const reread = () => rereadMisdated(db).run(new AbortController().signal);
  await reread();
  expect(await db("inbox.fetches")).toEqual([]);
  await db("mirror.misdated").update({ ordered_at: db.raw("now() - interval '1 hour'") });
  await reread();
  expect(await db("inbox.fetches").select("resource", "id", "reason")).toEqual([
    { resource: "order", id: "order-1", reason: "unbelieved" },
  ]);
});

test("the alerts of a release before, one an object, end", async () => {
  await deliver(db, alertContext, [[misdated("order-1")]]);
  await db("alerts.alerts").update({ key: "future:order:order-1" });
  await sweep(db, alertContext);
  expect(await alerts()).toMatchObject([
    { key: "future:order:order-1", state: "resolved" },
    { key: "misdated", state: "open" },
  ]);
});
