import type { Knex } from "knex";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { sampleOrder } from "../mirror/samples.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { emptyAll } from "../worker/worker-stand.ts";
import { deliver } from "./timeline-stand.ts";
import { declined, event, standing, sweep } from "./sweep-stand.ts";

const database = useTestDatabase();
let db: Knex;
beforeAll(() => {
  ({ db } = database);
});
beforeEach(() => emptyAll(db));

const odd = [
  { attempts: 1.5, next_retry_at: "soon", escalates: "perhaps", seq: "none" },
  { attempts: 1e300, next_retry_at: "+275760-09-13T00:00:00.000Z", escalates: 7, seq: 1e300 },
  { attempts: null, next_retry_at: null, escalates: null, seq: null },
  { attempts: [], next_retry_at: {}, escalates: [], seq: {} },
  {},
];

test.each(odd)("facts of one alert that are %j hold up no other alert", async (facts) => {
  const { clock, alertContext } = standing("2025-03-01T12:00:00.000Z");
  const near = { ...declined, attempt_count: 4, next_retry_at: "2025-03-02T00:00:00.000Z" };
  const dispute = sampleOrder({ id: "order-3", status: "chargeback", transactions: [] });
  await deliver(db, alertContext, [
    [event("order.failed", { ...near, id: "order-1", subscription_id: "subscription-1" })],
    [event("order.failed", { id: 5 })],
    [event("order.chargeback", dispute)],
  ]);
  await db("alerts.alerts").update({ facts: JSON.stringify(facts) });
  await deliver(db, alertContext, [[event("order.failed", near)]]);
  clock.advanceHours(1);
  await sweep(db, alertContext);
  const waiting = await db("alerts.digest_items as i")
    .join("alerts.alerts as a", "a.id", "i.alert_id")
    .where("a.order_id", "order-9")
    .pluck<string[]>("i.stage");
  expect(waiting).toContain("last-retry:4");
});
