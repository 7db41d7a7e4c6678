import type { Knex } from "knex";
import { beforeAll, expect, test } from "vitest";
import { sampleEntry, sampleOrder, sampleSubscription } from "../mirror/samples.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { deliver, messagesOf } from "./timeline-stand.ts";
import { testAlertContext } from "./test-alert-context.ts";

const database = useTestDatabase();
let db: Knex;
beforeAll(() => {
  ({ db } = database);
});

const alertContext = testAlertContext();
const event = (type: string, object: object) => ({
  id: crypto.randomUUID(),
  type,
  created_at: "2025-03-01T12:00:00.000Z",
  data: { object },
});
const entry = { status: "failed", failure_code: "expired_card" };
const declined = { status: "failed", failure_code: "expired_card" };

test("a decline that says nothing of retries has the subscription read, which completes it", async () => {
  const renewal = sampleOrder({
    ...declined,
    subscription_id: "subscription-1",
    subscription_cycle: 2,
    transactions: [sampleEntry(entry)],
  });
  const oneTime = sampleOrder({
    ...declined,
    id: "order-2",
    transactions: [sampleEntry({ ...entry, id: "sale-2" })],
  });
  await deliver(db, alertContext, [[event("order.failed", renewal), event("order.failed", oneTime)]]);
  const wanted = await db("inbox.fetches").select("resource", "id", "reason");
  expect(wanted).toEqual([{ resource: "subscription", id: "subscription-1", reason: "thin" }]);
  await db("inbox.fetches").delete();

  const details = { status: "past_due", attempt_count: 1, next_retry_at: null };
  const shown = sampleSubscription({ ...details, updated_at: "2025-03-01T12:00:01.000Z" });
  await deliver(db, alertContext, [[event("subscription.updated", shown)]]);
  expect(await messagesOf(db, "dunning:subscription-1:2")).toEqual(["trigger attempt:1"]);
  expect(await db("alerts.digest_items").pluck("stage")).toEqual(["attempt:1", "final"]);
  expect(await db("inbox.fetches"), "it is not asked for again").toEqual([]);
});
