import type { Knex } from "knex";
import { beforeAll, expect, test } from "vitest";
import { applyBatch } from "../../../src/core/worker/apply-batch.ts";
import { at, sampleEntry, sampleOrder } from "../../mirror/samples.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { applyDeps } from "../../worker/worker-stand.ts";
import { storeBodies } from "../timeline-stand.ts";
import { sweep, unresolved } from "../sweep-stand.ts";
import { settingsOf, testAlertContext, toldTo } from "../test-alert-context.ts";

const database = useTestDatabase();
let db: Knex;
beforeAll(() => {
  ({ db } = database);
});

const declined = (n: number, code: string): string => {
  const id = `order-${n}`;
  const entry = sampleEntry({ id: `sale-${n}`, status: "failed", failure_code: code });
  const object = sampleOrder({ id, status: "failed", failure_code: code, transactions: [entry] });
  const event = { id: `evt-${n}`, type: "order.failed", created_at: at(0), data: { object } };
  return JSON.stringify(event);
};

test("10,000 declines in a minute are one incident, and when it ends each is listed once", async () => {
  const codes = ["expired_card", "expired_card", "expired_card", "insufficient_funds"];
  const alertContext = testAlertContext({ settings: settingsOf({ digests: { when: "off" } }) });
  const deps = { ...applyDeps(db), ...toldTo(alertContext) };
  for (let from = 0; from < 10_000; from += 1_000) {
    const bodies = Array.from({ length: 1_000 }, (_, n) => declined(from + n, codes[n % 4]!));
    const seqs = await storeBodies(db, bodies);
    // As two workers would.
    await Promise.all([applyBatch(deps, seqs.slice(0, 500)), applyBatch(deps, seqs.slice(500))]);
  }
  const alerts = await db("alerts.alerts").where("rule", "decline").count("* as n").first();
  expect(Number(alerts?.["n"])).toBe(10_000);
  const incidents = await db("alerts.alerts").where("rule", "decline_storm");
  expect(incidents).toMatchObject([{ key: "storm:declines", occurrence: 1, state: "open" }]);
  const told = await db("alerts.outbox").orderBy("id").pluck<{ title: string }[]>("message");
  expect(told).toHaveLength(1);
  expect(told[0]?.title).toMatch(/^\d+ declines in 10 min, far above the usual rate$/);

  await sweep(db, alertContext);
  expect(await db("alerts.alerts").where({ key: "storm:declines", state: "open" })).toHaveLength(1);
  await db.raw("update alerts.history set recorded_at = recorded_at - interval '11 minutes'");
  await db.raw("update alerts.alerts set created_at = created_at - interval '11 minutes'");
  await sweep(db, alertContext);
  const messages = await db("alerts.outbox")
    .orderBy("id")
    .pluck<{ title: string; action: string; items?: { alertId: number }[] }[]>("message");
  const listed = messages.flatMap(({ items = [] }) => items.map(({ alertId }) => alertId));
  expect(new Set(listed).size).toBe(10_000);
  expect(listed).toHaveLength(10_000);
  expect(messages.length).toBeLessThan(200);
  expect(messages.at(-1)).toMatchObject({
    action: "resolve",
    title: "Declines are back to their usual rate: 10000 alerts listed, 100000.00 USD in total",
  });
  expect((await unresolved(db)).length).toBe(10_000);
});
