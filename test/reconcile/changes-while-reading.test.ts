import { afterAll, beforeAll, expect, test } from "vitest";
import { seededRandom } from "../../src/platform/random.ts";
import { reconcile } from "../../src/reconcile/reconcile.ts";
import { defaultReconcileSettings } from "../../src/reconcile/settings.ts";
import { startTestSandbox } from "../sandbox/harness.ts";
import type { Json, TestSandbox } from "../sandbox/harness.ts";
import { snapshotOf, wrongObjects } from "./nights.ts";
import { createReconcileStand } from "./reconcile-stand.ts";
import type { ReconcileStand } from "./reconcile-stand.ts";

let sandbox: TestSandbox;
let stand: ReconcileStand;

beforeAll(async () => {
  sandbox = await startTestSandbox("changing");
  stand = await createReconcileStand(sandbox.url);
  await sandbox.control("POST", "/traffic", { orders: 300, subscriptions: 30, seed: "changing" });
  await sandbox.control("POST", "/clock", { advance_seconds: 3_600 });
  await sandbox.control("PUT", "/switches", { maximum_page_size: 20 });
});

afterAll(async () => {
  await stand.close();
  await sandbox.close();
});

/** One change that no event announces, to something old. */
async function changeSomething(random: () => number): Promise<void> {
  const { orders, customers, subscriptions } = (await snapshotOf(sandbox)) as unknown as Record<
    string,
    Json[]
  >;
  const pick = (from: Json[] = [], status?: string): Json => {
    const all = status === undefined ? from : from.filter((one) => one.status === status);
    return all[Math.floor(random() * all.length)];
  };
  const paid = pick(orders, "succeeded");
  const changes = [
    () => sandbox.call("POST", `/v1/orders/${paid.id}/refund`, { amount: 1 }),
    () => sandbox.control("POST", `/orders/${paid.id}/chargeback`),
    () => sandbox.call("POST", `/v1/orders/${pick(orders, "failed").id}/retry`, {}),
    () => sandbox.call("DELETE", `/v1/subscriptions/${pick(subscriptions, "active").id}`),
    () => sandbox.call("DELETE", `/v1/customers/${pick(customers).id}`),
    () =>
      sandbox.control("POST", "/silent", {
        resource: "customers",
        id: pick(customers).id,
        set: { first_name: `Name ${Math.floor(random() * 1e6)}` },
      }),
  ];
  await changes[Math.floor(random() * changes.length)]?.();
}

test("what changes while pages are read is never called drift left, and the next run heals it", async () => {
  await stand.run({ kind: "import" });
  const random = seededRandom("changes");
  for (let n = 0; n < 20; n++) await changeSomething(random);
  const pending: Promise<void>[] = [];
  const outcome = await reconcile(
    stand.deps,
    { ...defaultReconcileSettings, graceMs: 0 },
    { kind: "full" },
    { onProgress: ({ pages }) => void (pages % 5 === 0 && pending.push(changeSomething(random))) },
  );
  await Promise.all(pending);
  expect(pending.length).toBeGreaterThan(3);
  expect(outcome).toMatchObject({ kind: "done", result: { complete: true, totals: { left: {} } } });

  await sandbox.control("POST", "/clock", { advance_seconds: 5 });
  expect(await stand.run()).toMatchObject({ complete: true, totals: { left: {} } });
  expect(await wrongObjects(stand, sandbox)).toEqual([]);
  expect(await stand.run()).toMatchObject({ totals: { healed: {}, left: {}, confirmed: {} } });
  const unexplained = await stand.database.db("reconcile.findings").whereNull("cause");
  expect(unexplained).toEqual([]);
});
