import { afterEach, beforeEach, expect, test } from "vitest";
import { type TestSandbox, aCustomer, anOrder, startTestSandbox } from "../sandbox/harness.ts";
import { advanceDays, firstDay } from "./planned-changes.ts";
import { type ReconcileStand, createReconcileStand } from "./reconcile-stand.ts";

let sandbox: TestSandbox;
let stand: ReconcileStand;
beforeEach(async () => {
  sandbox = await startTestSandbox("import-cause");
  stand = await createReconcileStand(sandbox.url);
  await sandbox.control("POST", "/clock", { now: firstDay });
  await anOrder(sandbox, await aCustomer(sandbox));
  await advanceDays(sandbox, 1);
});
afterEach(async () => {
  await stand.close();
  await sandbox.close();
});

/** The causes of all changes, `reconcile:N` without its number, and how many there are of each. */
async function causes(): Promise<Record<string, number>> {
  const rows = await stand.database.db("feed.changes").select<{ cause: string }[]>("cause").orderBy("seq");
  const counts: Record<string, number> = {};
  for (const { cause } of rows) {
    const [name = ""] = cause.split(":");
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

test.each(["import", "nightly"] as const)(
  "a run of kind %s that fills the mirror makes history, and what a later one finds is news",
  async (kind) => {
    await stand.run({ kind });
    const filled = await causes();
    expect(Object.keys(filled)).toEqual(["import"]);
    await anOrder(sandbox, await aCustomer(sandbox));
    await advanceDays(sandbox, 1);
    for (const later of ["nightly", "import"] as const) await stand.run({ kind: later });
    expect(await causes()).toEqual({ ...filled, reconcile: expect.any(Number) });
  },
);

test("a nightly run after an import that was not finished makes history of the rest", async () => {
  const rangeFrom = new Date(firstDay);
  const rangeTo = new Date(rangeFrom.getTime() + 3_600_000);
  await stand.run({ kind: "range", rangeFrom, rangeTo });
  expect(Object.keys(await causes())).toEqual(["import"]);
  await anOrder(sandbox, await aCustomer(sandbox));
  await advanceDays(sandbox, 1);
  await stand.run({ kind: "nightly" });
  expect(Object.keys(await causes())).toEqual(["import"]);
});
