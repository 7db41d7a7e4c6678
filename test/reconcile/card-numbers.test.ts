import { afterAll, beforeAll, expect, test } from "vitest";
import { applyBatch } from "../../src/core/worker/apply-batch.ts";
import { eventsSoFar, storeBodies } from "../alerts/timeline-stand.ts";
import { type Json, type TestSandbox, aCustomer, anOrder, startTestSandbox } from "../sandbox/harness.ts";
import { applyDeps } from "../worker/worker-stand.ts";
import { none } from "./none.ts";
import { type ReconcileStand, createReconcileStand, fingerprint } from "./reconcile-stand.ts";

const number = "4242 4242 4242 4242";
const masked = "[card number ending 4242]";

let sandbox: TestSandbox;
let stand: ReconcileStand;
let order: Json;

beforeAll(async () => {
  sandbox = await startTestSandbox("card-numbers");
  stand = await createReconcileStand(sandbox.url);
  const customer = await aCustomer(sandbox);
  order = await anOrder(sandbox, customer, {
    description: `card ${number}`,
    metadata: { note: number, shop_order_id: "4242424242424242" },
  });
  await sandbox.control("POST", "/clock", { advance_seconds: 60 });
});
afterAll(async () => {
  await stand.close();
  await sandbox.close();
});

const cardAlerts = (): Promise<Json[]> =>
  stand.database.db("alerts.alerts").where("rule", "card_number").orderBy("key").select("key", "found_by");

test("a card number that the service shows is masked by the import, told, and no drift ever after", async () => {
  const { db } = stand.database;
  await stand.run({ kind: "import" });
  expect(await db("mirror.orders").where("id", order.id).first()).toMatchObject({
    description: `card ${masked}`,
    data: { metadata: { note: masked, shop_order_id: "4242424242424242" } },
  });
  expect((await cardAlerts()).map(({ key }) => key)).toContain("card-number:order:metadata.note");
  await stand.run();
  const before = await fingerprint(stand);
  const alerts = await cardAlerts();
  expect(await stand.run()).toMatchObject({ complete: true, totals: { healed: none, left: none } });
  expect(await fingerprint(stand)).toBe(before);
  expect(await db("reconcile.findings").pluck("class")).toEqual([]);
  expect(await cardAlerts()).toEqual(alerts);
});

test("what events show of it is the same to a reconciliation", async () => {
  const { db } = stand.database;
  const events = (await eventsSoFar(sandbox)).map((event) => JSON.stringify(event));
  const rows = () => db("mirror.orders").where("id", order.id).select("description", "data", "content_hash");
  const imported = await rows();
  expect(events.join("")).toContain(number);
  await applyBatch(applyDeps(db), await storeBodies(db, events));
  expect(await rows()).toEqual(imported);
  expect(await stand.run()).toMatchObject({ complete: true, totals: { healed: none, left: none } });
  const { rows: kept } = await db.raw<{ rows: { all: string }[] }>(
    "select string_agg(convert_from(raw, 'UTF8'), ' ') as all from inbox.receipts",
  );
  expect(kept[0]?.all).toContain(masked);
  expect(kept[0]?.all).not.toContain(number);
});
