import type { Knex } from "knex";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ReconcileStand, createReconcileStand } from "../reconcile/reconcile-stand.ts";
import { type TestSandbox, aCustomer, aSubscription, startTestSandbox } from "../sandbox/harness.ts";
import { advance, deliver, eventsSoFar } from "./timeline-stand.ts";
import { settingsOf, testAlertContext } from "./test-alert-context.ts";

const settings = settingsOf({ digests: { when: "off" } });
let sandbox: TestSandbox;
let stand: ReconcileStand;
let db: Knex;
beforeAll(async () => {
  sandbox = await startTestSandbox("forgotten");
  stand = await createReconcileStand(sandbox.url, { settings });
  ({ db } = stand.database);
});
afterAll(async () => {
  await stand.close();
  await sandbox.close();
});

test("the first run tells nothing of a year that was before the first webhook, though nobody has imported it", async () => {
  await sandbox.control("POST", "/clock", { now: "2026-01-01T09:00:00.000Z" });
  for (let n = 0; n < 3; n++) {
    await aSubscription(sandbox, await aCustomer(sandbox, "card_renewal_declined"));
  }
  await advance(sandbox, 120);
  const old = (await eventsSoFar(sandbox)).length;
  const fresh = await aSubscription(sandbox, await aCustomer(sandbox, "card_renewal_declined"));
  const events = (await eventsSoFar(sandbox)).slice(old);
  await deliver(db, testAlertContext({ settings }), [events]);
  await advance(sandbox, 31.5);
  const tried = (await eventsSoFar(sandbox)).filter(({ data }) => data.object.subscription_id === fresh.id);
  expect(tried.map(({ type }) => type)).toContain("order.failed");
  await stand.run({ kind: "nightly" });
  const told = await db("alerts.outbox as o")
    .join("alerts.alerts as a", "a.id", "o.alert_id")
    .where("o.action", "trigger")
    .orderBy("o.id")
    .pluck<string[]>("a.key");
  // What was lost since the first webhook is told; and that it was lost.
  expect(told.filter((key) => !key.startsWith("drift:"))).toEqual([`dunning:${fresh.id}:2`]);
});
