import { afterAll, beforeAll, expect, test } from "vitest";
import { compareStates } from "../../../src/core/mirror/compare/compare-states.ts";
import type { GroupState, Snapshot } from "../../../src/core/mirror/snapshot.ts";
import { decode, mirrorResources } from "../../../src/core/mirror/resources.ts";
import { listed } from "../../reconcile/sandbox-observations.ts";
import { startTestSandbox } from "../../sandbox/harness.ts";
import { type ReconcileStand, createReconcileStand } from "../../reconcile/reconcile-stand.ts";
import { statementsOf } from "../../support/statements-of.ts";

let stand: ReconcileStand;
let shown: Snapshot[];

beforeAll(async () => {
  const sandbox = await startTestSandbox("compare");
  stand = await createReconcileStand(sandbox.url);
  await sandbox.control("POST", "/traffic", { orders: 60, subscriptions: 10, seed: "compare" });
  // An import leaves the last ten minutes to the events under way.
  await sandbox.control("POST", "/clock", { advance_seconds: 3_600 });
  await stand.run({ kind: "import" });
  shown = await listed(sandbox);
  await sandbox.close();
});
afterAll(() => stand.close());

const shownStates = (): GroupState[] => shown.map(decode).flatMap((one) => (one.ok ? one.states : []));

test("of what is equal, every row of every table is proved so by one statement a table", async () => {
  const { db } = stand.database;
  const asked = await statementsOf(stand.database.db, async () => {
    expect(await compareStates(db, shownStates())).toEqual([]);
  });
  expect(asked).toHaveLength(mirrorResources.length);
});

test("who was erased is compared without what was personal", async () => {
  const { db } = stand.database;
  const states = shownStates();
  const customer = states.find(({ group }) => group === "customer");
  await db("mirror.erasures").insert({ customer_id: customer?.id });
  const own = states.filter(({ id }) => id === customer?.id);
  const differing = await compareStates(db, own);
  expect(differing).toMatchObject([{ id: customer?.id, resource: "customer" }]);
  expect(own[0]?.columns["email"]).toBe("[redacted]");
});
