import { afterAll, beforeAll, expect, test } from "vitest";
import { seededRandom } from "../../src/platform/random.ts";
import { reconcile } from "../../src/parts/reconcile/reconcile.ts";
import { defaultReconcileSettings } from "../../src/parts/reconcile/settings.ts";
import { type Json, type TestSandbox, startTestSandbox } from "../sandbox/harness.ts";
import { startDeliveries } from "./deliveries.ts";
import { advanceDays, snapshotOf, wrongObjects } from "./planned-changes.ts";
import { none } from "./none.ts";
import { type ReconcileStand, createReconcileStand, fingerprint } from "./reconcile-stand.ts";

let sandbox: TestSandbox;
let stand: ReconcileStand;

beforeAll(async () => {
  sandbox = await startTestSandbox("changing");
  stand = await createReconcileStand(sandbox.url);
  await sandbox.control("POST", "/traffic", { orders: 200, subscriptions: 30, seed: "changing" });
  await sandbox.control("POST", "/clock", { advance_seconds: 3_600 });
  await sandbox.control("PUT", "/switches", { maximum_page_size: 20 });
});

afterAll(async () => {
  await stand.close();
  await sandbox.close();
});

/** One change to something old: most are announced, an edit of a customer is not. */
async function changeSomething(random: () => number): Promise<void> {
  const { orders, customers, subscriptions } = (await snapshotOf(sandbox)) as unknown as Record<string, Json[]>;
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

/** Rows that show an older state than one that is known of them. */
async function rowsThatWentBack(): Promise<unknown[]> {
  const { rows } = await stand.database.db.raw<{ rows: unknown[] }>(
    `select v.resource, v.id from mirror.versions v
       left join mirror.orders o on v.resource = 'order' and o.id = v.id
       left join mirror.subscriptions s on v.resource = 'subscription' and s.id = v.id
       left join mirror.customers c on v.resource = 'customer' and c.id = v.id
     where v.resource in ('order', 'subscription', 'customer')
       and v.source_updated_at > coalesce(o.source_updated_at, s.source_updated_at, c.source_updated_at)`,
  );
  return rows;
}

test("with every twentieth delivery lost, what changes while pages are read is healed, explained and never undone", async () => {
  await stand.run({ kind: "import" });
  const random = seededRandom("changes");
  let n = 0;
  const { deliver } = startDeliveries(stand.database.db, sandbox, () => ++n % 20 === 0);
  const before = await deliver();
  for (let change = 0; change < 20; change++) await changeSomething(random);
  await deliver();
  const orders = (await snapshotOf(sandbox)).orders as unknown as Json[];
  const refunded = orders.find(({ status }) => status === "succeeded");
  await sandbox.ok("POST", `/v1/orders/${refunded.id}/refund`, { amount: 1 });
  n = 19;
  expect(await deliver()).toMatchObject({ lost: 1 });
  expect(before.lost).toBeGreaterThan(10);

  const pending: Promise<unknown>[] = [];
  const onProgress = ({ pages }: { pages: number }) => {
    if (pages % 5 === 0) pending.push(changeSomething(random).then(deliver));
  };
  const settings = { ...defaultReconcileSettings, graceMs: 0 };
  const outcome = await reconcile(stand.deps, settings, { kind: "full" }, { onProgress });
  await Promise.all(pending);
  expect(pending.length).toBeGreaterThan(3);
  expect(outcome).toMatchObject({
    kind: "done",
    result: { complete: true, totals: { left: none } },
  });
  expect(await rowsThatWentBack()).toEqual([]);

  await sandbox.control("POST", "/clock", { advance_seconds: 5 });
  expect(await stand.run()).toMatchObject({ complete: true, totals: { left: none } });
  expect(await wrongObjects(stand, sandbox)).toEqual([]);
  const whole = await fingerprint(stand);
  expect(await stand.run()).toMatchObject({
    totals: { healed: none, left: none, confirmed: none },
  });
  expect(await fingerprint(stand)).toBe(whole);

  const causes = await stand.database.db("reconcile.findings").distinct("cause").orderBy("cause");
  expect(causes).toEqual([{ cause: "missed_webhook" }, { cause: "out_of_band_edit" }]);
});

test("a mirror that is ten days behind is equal after one night", async () => {
  await sandbox.control("POST", "/traffic", { orders: 60, subscriptions: 6, days: 10, seed: "10" });
  await advanceDays(sandbox, 10);
  expect((await wrongObjects(stand, sandbox)).length).toBeGreaterThan(2);
  const result = await stand.run({ kind: "nightly" });
  expect(result).toMatchObject({ complete: true, totals: { left: none } });
  expect(Object.keys(result.totals.healed)).toEqual(expect.arrayContaining(["missing_here", "behind"]));
  expect(await wrongObjects(stand, sandbox)).toEqual([]);
});
