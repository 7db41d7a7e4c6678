import { expect, test } from "vitest";
import { recheckUnlisted } from "../../../src/parts/reconcile/recheck/rechecks.ts";
import { statementsOf } from "../../support/statements-of.ts";
import { useTestDatabase } from "../../support/use-database.ts";

const database = useTestDatabase();

test("rows are looked up among the ids shown, not compared with each of them, also by a plan for any ids", async () => {
  const { db } = database;
  const sight = { run: 1, noticedAt: new Date("2026-03-01T00:00:00Z") };
  const shown = {
    resource: "order",
    slice: 1,
    after: null,
    before: null,
    shownIds: ["a"],
  } as const;
  const [statement = ""] = await statementsOf(db, async () => {
    expect(await recheckUnlisted(db, sight, shown)).toBe(0);
  });
  const { rows } = await db.raw<{ rows: Record<string, string>[] }>(`explain (generic_plan) ${statement}`);
  expect(rows.map((row) => row["QUERY PLAN"]).join("\n")).toContain("hashed SubPlan");
});
