import { afterAll, beforeAll, expect, test } from "vitest";
import { createSandboxCalls } from "../../../src/parts/sandbox/cli/demo/sandbox-calls.ts";
import { seededRandom } from "../../../src/platform/random.ts";
import { sandboxApiKey } from "../../../src/app/create-runtime.ts";
import { type ReconcileStand, createReconcileStand } from "../../reconcile/reconcile-stand.ts";
import { type TestSandbox, startTestSandbox } from "../../sandbox/harness.ts";
import { ask } from "../ask.ts";
import type { WireObject } from "../sandbox-history.ts";
import { sumBy, text } from "../service-sums.ts";

const year = { from: "2026-01-01", to: "2026-12-31" };
/** By how much an amount is changed by hand. */
const edited = 7;
let sandbox: TestSandbox;
let stand: ReconcileStand;
/** What is wrong with the orders of the mirror, and what it may cost. */
let wrong: { currency: string; atRisk: number }[];

const exceptions = async () =>
  (await ask(stand.database.db, "exceptions", year)).rows.filter(
    ({ resource, class: kind }) => resource === "order" && kind !== "identity",
  );

beforeAll(async () => {
  sandbox = await startTestSandbox("exceptions");
  stand = await createReconcileStand(sandbox.url);
  const calls = createSandboxCalls(sandbox.url, sandboxApiKey);
  const traffic = async (seed: string) => {
    await calls.control("POST", "/traffic", { orders: 60, subscriptions: 15, days: 20, seed });
    const { orders } = await calls.snapshot();
    return new Map(orders.map((order): [string, WireObject] => [text(order, "id"), order]));
  };
  await calls.control("POST", "/clock", { now: "2026-02-03T11:00:00.000Z" });
  const before = await traffic("before");
  await stand.run({ kind: "import" });
  const paid = [...before.values()].filter((order) => order["status"] === "succeeded");
  for (const order of paid.slice(0, 5)) {
    await calls.control("POST", `/orders/${text(order, "id")}/chargeback`, {});
  }
  const after = await traffic("after");
  const isChanged = (order: WireObject) => before.get(text(order, "id"))?.["updated_at"] !== order["updated_at"];
  const random = seededRandom("edits");
  const byHand = [...after.values()].filter((order) => !isChanged(order) && random() < 0.2);
  await stand.database
    .db("mirror.orders")
    .whereIn(
      "id",
      byHand.map((order) => text(order, "id")),
    )
    .increment("total", edited);
  const missed = [...after.values()].filter(isChanged).map((order) => {
    const isStatusKept = before.get(text(order, "id"))?.["status"] === order["status"];
    return {
      currency: text(order, "currency"),
      atRisk: isStatusKept ? 0 : (order["total"] as number),
    };
  });
  wrong = [...missed, ...byHand.map((order) => ({ currency: text(order, "currency"), atRisk: edited }))];
});
afterAll(async () => {
  await stand.close();
  await sandbox.close();
});

test("every order that the mirror had missed or that was edited stands there once, with what it may cost", async () => {
  expect(await exceptions()).toEqual([]);
  await stand.run({ kind: "full" });
  const rows = await exceptions();
  const told = rows.map((row) => ({ ...row, atRisk: Number(row["amount_at_risk"]) }));
  const byCurrency = (row: WireObject) => text(row, "currency");
  expect(sumBy(told, byCurrency, "atRisk")).toEqual(sumBy(wrong, byCurrency, "atRisk"));
  expect(new Set(rows.map((row) => row["class"]))).toEqual(new Set(["missing_here", "behind", "mismatch"]));
  expect(rows.filter(({ healed_at }) => healed_at === null)).toEqual([]);
  await stand.run({ kind: "full" });
  expect(await exceptions()).toEqual(rows);
});
