import type { Knex } from "knex";
import { testAlertContext, toldTo } from "../../alerts/test-alert-context.ts";
import { eventsSoFar, sendDue, storeBodies } from "../../alerts/timeline-stand.ts";
import { standingClock } from "../../alerts/sweep-stand.ts";
import { type TestSandbox, startTestSandbox } from "../../sandbox/harness.ts";
import { applyDeps } from "../../worker/worker-stand.ts";
import { applyBatch } from "../../../src/core/worker/apply-batch.ts";

/**
 * A shop's two months in a sandbox, the same in every run, and what it sent applied as workers do it. The sandbox
 * stands at a time of its own, long ago.
 */
export async function playShop(db: Knex): Promise<TestSandbox> {
  const sandbox = await startTestSandbox("golden");
  await sandbox.control("POST", "/clock", { now: "2025-03-01T06:00:00.000Z" });
  await sandbox.control("POST", "/traffic", {
    orders: 24,
    subscriptions: 5,
    days: 45,
    chargebacks: 2,
    seed: "golden",
  });
  await sandbox.control("POST", "/clock", { now: "2025-05-01T06:00:00.000Z" });
  const clock = standingClock("2025-05-01T06:00:00.000Z");
  const alertContext = testAlertContext({ clock, serviceClock: clock });
  const bodies = (await eventsSoFar(sandbox)).map((event) => JSON.stringify(event));
  for (let from = 0; from < bodies.length; from += atOnce) {
    const seqs = await storeBodies(db, bodies.slice(from, from + atOnce));
    await applyBatch({ ...applyDeps(db), ...toldTo(alertContext) }, seqs);
    await sendDue(db);
  }
  return sandbox;
}

const atOnce = 50;

/** Changes the total of an order in the mirror by hand, as nobody should; gives back its id. */
export async function spoilOrder(db: Knex): Promise<string> {
  const { id } = await db("mirror.orders").where("status", "succeeded").orderBy("id").first("id");
  await db("mirror.orders").where({ id }).update({ total: 5 });
  return id;
}

/**
 * The sandbox's time is long ago: what was read then counts as read lately, so that it proves something now. What was
 * received came before that, however fast the test is.
 */
export async function readLately(db: Knex): Promise<void> {
  await db("reconcile.coverage").update({ read_at: db.raw("now() - interval '2 hours'") });
  const before = db.raw("now() - interval '3 hours'");
  await db("inbox.receipts").update({ received_at: before });
  await db("inbox.progress").whereNotNull("object_known_at").update({ object_known_at: before, arrived_at: before });
  await db("reconcile.runs").update({ started_at: before });
}
