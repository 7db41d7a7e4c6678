import { expect, test } from "vitest";
import { makePlan } from "../../src/parts/reconcile/plan.ts";
import { dayMs, defaultReconcileSettings } from "../../src/parts/reconcile/settings.ts";
import { none } from "./none.ts";
import { useWalkedService } from "./use-walked-service.ts";

const walked = useWalkedService();

const ago = (days: number) => new Date(Date.now() - days * dayMs);
const orderHere = (id: string) => walked.stand.database.db("mirror.orders").where({ id }).first();

/** Where the next night's window would begin, so many days from now. */
async function windowFrom(days: number): Promise<number> {
  const { db } = walked.stand.database;
  const wanted = { kind: "nightly", t0: ago(-days), rangeFrom: null, rangeTo: null } as const;
  const plan = await makePlan(db, defaultReconcileSettings, wanted);
  const [window] = plan.filter(({ step }) => step === "window");
  return Date.parse(window?.createdFrom ?? "");
}

test("a range heals what was created in it, and says nothing of the rest", async () => {
  const { db } = walked.stand.database;
  // Orders come a minute apart, three of a minute.
  const [first] = await db("mirror.orders").orderBy("created_at").select("created_at");
  const wrong = ["order-0000", "order-0005", "order-0029"];
  await db("mirror.orders").whereIn("id", wrong).update({ total: 1 });
  // The run must be dated later than what wrote the rows.
  walked.service.quirks = { skewMs: 5_000 };
  await walked.stand.run({ kind: "full" }, { reportOnly: true });
  const minute = (n: number) => new Date(Number(first.created_at) + n * 60_000);
  const result = await walked.stand.run({
    kind: "range",
    rangeFrom: minute(1),
    rangeTo: minute(2),
  });
  expect(result).toMatchObject({
    complete: true,
    totals: { rows: { order: 3 }, healed: { mismatch: 1 }, left: { mismatch: 2 } },
  });
  expect(await orderHere("order-0005")).toMatchObject({ total: "1005" });
  expect(await orderHere("order-0000")).toMatchObject({ total: "1" });
  expect(await orderHere("order-0029")).toMatchObject({ total: "1" });
  expect((await walked.stand.run()).totals).toMatchObject({ healed: { mismatch: 2 }, left: none });
});

test("an end in the future is no coverage of the future", async () => {
  const before = await windowFrom(5);
  // A day of overlap with what was read.
  expect(Math.abs(before - ago(1).getTime())).toBeLessThan(60_000);
  await walked.stand.run({
    kind: "range",
    rangeFrom: ago(5),
    rangeTo: new Date("2099-01-01T00:00:00Z"),
  });
  expect(await windowFrom(5)).toBeLessThan(before + 60_000);
});

test.each([undefined, new Date("2099-01-01T00:00:00Z")])(
  "a range that begins in the future is refused (until %s)",
  async (rangeTo) => {
    const range = { rangeFrom: ago(-1), ...(rangeTo === undefined ? {} : { rangeTo }) };
    await expect(walked.stand.run({ kind: "range", ...range })).rejects.toMatchObject({
      exitCode: 64,
      message: expect.stringContaining("is too recent"),
    });
    expect(await walked.stand.database.db("reconcile.runs").where("kind", "range")).toEqual([]);
  },
);
